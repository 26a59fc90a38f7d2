import Glibc
import HostKit

/// What a process holds, as the kernel counts it.
package struct ProcessResources: Equatable, CustomStringConvertible {
  package var descriptors: Int
  package var residentBytes: Int

  package init(of pid: pid_t) throws {
    guard let directory = opendir("/proc/\(pid)/fd") else { throw HostFileError(path: "/proc/\(pid)/fd", code: errno) }
    defer { closedir(directory) }
    descriptors = 0
    while let entry = readdir(directory) {
      if entry.pointee.d_name.0 != CChar(bitPattern: UInt8(ascii: ".")) { descriptors += 1 }
    }
    let pages = try HostFile.readText("/proc/\(pid)/statm").split(separator: " ")
    residentBytes = (pages.count > 1 ? Int(pages[1]) ?? 0 : 0) * sysconf(Int32(_SC_PAGESIZE))
  }

  /// Those of a process that comes to rest: the fewest descriptors within a quarter of a second.
  package static func atRest(_ pid: pid_t) async throws -> ProcessResources {
    var least = try ProcessResources(of: pid)
    for _ in 0..<10 {
      try await SystemClock.shared.sleep(nanoseconds: .milliseconds(25))
      let now = try ProcessResources(of: pid)
      least.descriptors = min(least.descriptors, now.descriptors)
      least.residentBytes = now.residentBytes
    }
    return least
  }

  package var description: String { "\(descriptors) descriptors, \(residentBytes >> 10) KiB" }
}
