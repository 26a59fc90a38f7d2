import Glibc
import HostKit

/// The sockets of this process that are connected to a loopback port.
func sockets(to port: UInt16) -> [Int32] {
  guard let directory = opendir("/proc/self/fd") else { return [] }
  defer { closedir(directory) }
  var found: [Int32] = []
  while let entry = readdir(directory) {
    let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    if let descriptor = Int32(name), peerPort(of: descriptor) == port { found.append(descriptor) }
  }
  return found
}

/// How many there are.
func openSockets(to port: UInt16) -> Int { sockets(to: port).count }

/// The same, and those that are still being connected to an address of either family or wait to be accepted.
func openSocketsToAnywhere(_ port: UInt16) -> Int {
  var count = 0
  for name in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
    guard let file = fopen(name, "r") else { continue }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 512)
    while fgets(&line, Int32(line.count), file) != nil {
      let fields = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        .split(separator: " ")
      guard fields.count > 3, let remote = fields[2].split(separator: ":").last.flatMap({ UInt16($0, radix: 16) })
      else {
        continue
      }
      // Established, or asked for.
      if remote == port, fields[3] == "01" || fields[3] == "02" { count += 1 }
    }
  }
  return count
}

private func peerPort(of descriptor: Int32) -> UInt16? {
  var address = sockaddr_in()
  var size = socklen_t(MemoryLayout<sockaddr_in>.size)
  let result = withUnsafeMutablePointer(to: &address) { pointer in
    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &size) }
  }
  guard result == 0, address.sin_family == sa_family_t(AF_INET) else { return nil }
  return UInt16(bigEndian: address.sin_port)
}

/// Waits for what nobody tells: what the kernel does to a descriptor, or when an object is released.
func lookAgain(while condition: () -> Bool) async {
  while condition(), !Task.isCancelled {
    try? await SystemClock.shared.sleep(nanoseconds: .milliseconds(5))
  }
}

/// For a peer that does nothing: gives the processor away.
func usleepABit() {
  usleep(20_000)
}
