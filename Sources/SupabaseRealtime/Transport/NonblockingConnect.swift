import Glibc

/// TCP connects that are waited for with `poll`.
enum NonblockingConnect {
  struct StartError: Error {
    /// errno
    let code: Int32
  }

  /// Begins to connect. The socket is non-blocking and closed on exec, and the caller's to close.
  static func start(_ address: AddressResolver.Address, port: UInt16) -> Result<Int32, StartError> {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address.text, String(port), &hints, &list) == 0, let entry = list?.pointee else {
      return .failure(StartError(code: EINVAL))
    }
    defer { freeaddrinfo(list) }
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    let descriptor = socket(entry.ai_family, type, 0)
    guard descriptor >= 0 else { return .failure(StartError(code: errno)) }
    if connect(descriptor, entry.ai_addr, entry.ai_addrlen) != 0 && errno != EINPROGRESS {
      let code = errno
      close(descriptor)
      return .failure(StartError(code: code))
    }
    return .success(descriptor)
  }

  /// How it went, once the socket is writable: 0 or an errno. Reading it resets it.
  static func pendingError(of descriptor: Int32) -> Int32 {
    var error: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size)
    return error
  }
}
