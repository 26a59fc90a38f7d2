import Glibc
import HostKit

/// The client's end of a plain blocking connection to a loopback port.
enum RawClient {
  /// Nil when nobody accepts.
  static func connect(to port: UInt16) -> RawPeer? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      close(descriptor)
      return nil
    }
    return RawPeer(descriptor)
  }
}

extension RawPeer {
  /// How the other side ended it, once it has.
  func waitForEnd(_ received: ([UInt8]) -> Void = { _ in }) -> RawEnding {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count == 0 { return .fin }
      if count < 0 { return errno == ECONNRESET ? .reset : .other(errno) }
      received(Array(buffer[..<count]))
    }
  }

  func end() { shutdown(descriptor, Int32(SHUT_WR)) }

  func reset() {
    var now = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    Glibc.close(descriptor)
  }

  func close() { Glibc.close(descriptor) }
}

enum RawEnding: Equatable {
  case fin, reset
  case other(Int32)
}

/// Runs what blocks on a thread of its own.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
  await withCheckedContinuation { continuation in
    HostThread.detach(name: "raw-client") { continuation.resume(returning: body()) }
  }
}
