import Glibc

/// A Unix socket of our own for libwebsockets to connect to, where its socket is to be replaced by a tunnel at once.
///
/// Not a byte goes through it, so it does not matter who else of this machine may find it. The name is one that the
/// kernel picks, in no file system.
enum StandInListener {
  /// - Parameter body: gets the address as libwebsockets takes it; the listener is gone afterwards.
  /// - Returns: false when there is no such socket, `body` was not called then.
  static func whileListening(_ body: (String) -> Void) -> Bool {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    guard let name = bind(descriptor), listen(descriptor, 16) == 0 else { return false }
    body("+@\(name)")
    return true
  }

  /// Binding without a name makes the kernel pick one, which begins with a zero byte.
  private static func bind(_ descriptor: Int32) -> String? {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let family = socklen_t(MemoryLayout<sa_family_t>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        Glibc.bind(descriptor, pointer, family) == 0 && getsockname(descriptor, pointer, &size) == 0
      }
    }
    guard isBound, size > family + 1 else { return nil }
    return withUnsafeBytes(of: address.sun_path) { String(decoding: $0[1..<Int(size - family)], as: UTF8.self) }
  }
}
