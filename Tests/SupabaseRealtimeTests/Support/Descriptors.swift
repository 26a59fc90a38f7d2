import Glibc

/// How many sockets of this process are connected to a loopback port.
func openSockets(to port: UInt16) -> Int {
  (0..<4096).count { descriptor in
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(Int32(descriptor), $0, &size) }
    }
    return result == 0 && address.sin_family == sa_family_t(AF_INET) && UInt16(bigEndian: address.sin_port) == port
  }
}

/// For a peer that does nothing: gives the processor away.
func usleepABit() {
  usleep(20_000)
}
