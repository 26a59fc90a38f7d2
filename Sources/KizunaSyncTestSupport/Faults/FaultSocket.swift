import CLinux
import Glibc
import HostKit

/// The few socket calls a proxy needs. All sockets are non-blocking and closed on exec.
enum FaultSocket {
  enum Read {
    case bytes(ArraySlice<UInt8>)
    case nothing, end, failure
  }

  private static let type =
    Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)

  /// A socket bound to a port of the loopback interface. Several may be bound to one port while at most one listens.
  static func bound(to port: UInt16) throws(FaultProxyError) -> (descriptor: Int32, port: UInt16) {
    let descriptor = socket(AF_INET, type, 0)
    guard descriptor >= 0 else { throw FaultProxyError(port: port, code: errno) }
    var one: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer -> Int32 in
        guard bind(descriptor, pointer, size) == 0 else { return -1 }
        return getsockname(descriptor, pointer, &size)
      }
    }
    guard result == 0 else {
      let code = errno
      close(descriptor)
      throw FaultProxyError(port: port, code: code)
    }
    return (descriptor, UInt16(bigEndian: address.sin_port))
  }

  static func listening(on port: UInt16) throws(FaultProxyError) -> Int32 {
    let descriptor = try bound(to: port).descriptor
    guard listen(descriptor, 128) == 0 else {
      let code = errno
      close(descriptor)
      throw FaultProxyError(port: port, code: code)
    }
    return descriptor
  }

  static func endListening(_ listener: Int32) {
    // Closing alone would leave it listening while another thread waits for it in `poll`.
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
  }

  static func accept(_ listener: Int32) -> Int32? {
    let descriptor = kd_accept_closed_on_exec(listener)
    guard descriptor >= 0 else { return nil }
    prepare(descriptor)
    return descriptor
  }

  /// Starts connecting to a port of the loopback interface; nil when that failed at once.
  static func connect(to port: UInt16) -> Int32? {
    let descriptor = socket(AF_INET, type, 0)
    guard descriptor >= 0 else { return nil }
    prepare(descriptor)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if result == 0 || errno == EINPROGRESS { return descriptor }
    close(descriptor)
    return nil
  }

  /// Nil while it is being connected, then whether it was.
  static func isConnected(_ descriptor: Int32) -> Bool? {
    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    guard poll(&entry, 1, 0) > 0 else { return nil }
    var problem: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 && problem == 0
  }

  private static func prepare(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    // Every piece that is sent is a packet of its own.
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
  }

  static func read(_ descriptor: Int32) -> Read {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = recv(descriptor, &bytes, bytes.count, 0)
    if count > 0 { return .bytes(bytes[..<count]) }
    if count == 0 { return .end }
    return errno == EAGAIN || errno == EINTR ? .nothing : .failure
  }

  /// - Returns: how many bytes the system took; nil when the connection is lost.
  static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Int? {
    let sent = bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    if sent >= 0 { return sent }
    return errno == EAGAIN || errno == EINTR ? 0 : nil
  }

  static func endWriting(_ descriptor: Int32) {
    shutdown(descriptor, Int32(SHUT_WR))
  }

  static func close(_ descriptor: Int32) {
    Glibc.close(descriptor)
  }

  static func reset(_ descriptor: Int32) {
    var now = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    Glibc.close(descriptor)
  }
}
