import Glibc
import HostKit

@testable import LocalStack

/// A WebSocket client that sends exactly the bytes it is told to. Every call blocks a thread of its own.
struct RawClient: Sendable {
  private let descriptor: Int32

  init(port: UInt16) async throws {
    descriptor = try await Self.blocking {
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
      let result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      guard result == 0 else {
        close(descriptor)
        throw ReplayFailure("no connection")
      }
      var limit = timeval(tv_sec: 20, tv_usec: 0)
      setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
      var one: Int32 = 1
      setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
      return descriptor
    }.get()
  }

  func end() { close(descriptor) }

  private static func blocking<Value: Sendable>(
    _ body: @escaping @Sendable () throws -> Value
  ) async -> Result<Value, any Error> {
    await withCheckedContinuation { done in
      HostThread.detach(name: "raw-client") { done.resume(returning: Result(catching: body)) }
    }
  }

  func send(_ bytes: [UInt8]) async {
    _ = await Self.blocking {
      var rest = bytes[...]
      while !rest.isEmpty {
        let sent = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        if sent <= 0 { return }
        rest = rest.dropFirst(sent)
      }
    }
  }

  private func read(_ count: Int) throws -> [UInt8] {
    var result: [UInt8] = []
    while result.count < count {
      var buffer = [UInt8](repeating: 0, count: count - result.count)
      let got = recv(descriptor, &buffer, buffer.count, 0)
      if got <= 0 { throw ReplayFailure(got == 0 ? "end of stream" : "nothing came") }
      result += buffer[..<got]
    }
    return result
  }

  /// An HTTP answer: status and body.
  func response() async throws -> (status: Int, body: String) {
    try await Self.blocking {
      var head: [UInt8] = []
      while !head.suffix(4).elementsEqual([13, 10, 13, 10]) { head += try read(1) }
      let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
      let status = Int(lines.first?.split(separator: " ").dropFirst().first ?? "") ?? 0
      let length =
        lines.first { $0.lowercased().hasPrefix("content-length:") }
        .flatMap { Int($0.dropFirst("content-length:".count).drop { $0 == " " }) } ?? 0
      return (status, String(decoding: try read(length), as: UTF8.self))
    }.get()
  }

  /// The next frame of the server.
  func frame() async throws -> WebSocketFrame {
    try await Self.blocking {
      let head = try read(2)
      var length = Int(head[1])
      if length >= 126 { length = try read(length == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) } }
      guard let opcode = WebSocketFrame.Opcode(rawValue: head[0] & 0x0F) else { throw ReplayFailure("bad opcode") }
      return WebSocketFrame(opcode: opcode, payload: try read(length))
    }.get()
  }

  /// Nothing more comes.
  func isAtEnd() async -> Bool {
    let ended = await Self.blocking {
      var byte: UInt8 = 0
      return recv(descriptor, &byte, 1, 0) <= 0
    }
    return (try? ended.get()) ?? false
  }
}

struct ReplayFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
