import Glibc
import HostKit

/// A file system of 2 MB that can be filled.
struct SmallDisk: Sendable {
  let path: String

  /// Nil where this process may not mount one.
  init?(_ path: String) async throws {
    self.path = path
    mkdir(path, 0o700)
    let mount = try ChildProcess(
      executable: "/bin/mount", arguments: ["-t", "tmpfs", "-o", "size=2m", "tmpfs", path])
    guard await mount.ending().code == 0 else { return nil }
  }

  private var ballast: String { path + "/ballast" }

  /// Leaves no free block.
  func fill() throws {
    let file = open(ballast, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw HostFileError(path: ballast, code: errno) }
    defer { close(file) }
    let block = [UInt8](repeating: 1, count: 4096)
    while write(file, block, block.count) > 0 {}
  }

  func free() {
    unlink(ballast)
  }

  func unmount() async {
    let process = try? ChildProcess(executable: "/bin/umount", arguments: ["--lazy", path])
    _ = await process?.ending()
  }
}
