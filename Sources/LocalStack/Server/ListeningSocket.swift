import Glibc

/// A bound, listening, non-blocking TCP socket.
struct ListeningSocket {
  let descriptor: Int32
  let port: UInt16

  /// - Parameters:
  ///   - host: a numeric address, or a name that resolves to one of this machine.
  ///   - port: 0 lets the system choose.
  static func open(host: String, port: UInt16) throws(StackServerError) -> ListeningSocket {
    let address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_PASSIVE
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, String(port), &hints, &list) == 0, let entry = list?.pointee else {
      throw .invalidAddress(host)
    }
    defer { freeaddrinfo(list) }
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    let descriptor = socket(entry.ai_family, type, 0)
    guard descriptor >= 0 else { throw .cannotListen(address, reason: String(cString: strerror(errno))) }
    var one: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    guard bind(descriptor, entry.ai_addr, entry.ai_addrlen) == 0, listen(descriptor, 512) == 0 else {
      let code = errno
      Glibc.close(descriptor)
      switch code {
      case EADDRINUSE: throw .addressInUse(address)
      case EADDRNOTAVAIL: throw .invalidAddress(host)
      default: throw .cannotListen(address, reason: String(cString: strerror(code)))
      }
    }
    return ListeningSocket(descriptor: descriptor, port: boundPort(descriptor))
  }

  private static func boundPort(_ descriptor: Int32) -> UInt16 {
    var storage = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &size) }
      // The port lies at the same place in both families.
      return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { UInt16(bigEndian: $0.pointee.sin_port) }
    }
  }
}
