import Glibc
import HostKit

/// Runs `kizuna-doorbell` where it may not write to a folder. The tests may run as root, who may write everywhere but to
/// a file system that is mounted for reading.
enum Unprivileged {
  static func start(_ arguments: [String], mayNotWrite folder: String) async throws -> ChildProcess {
    if getuid() != 0 {
      return try shell("chmod 500 \"$0\"; exec \"$@\"", folder, arguments)
    }
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"]
    let probe = try ChildProcess(
      executable: "/usr/bin/setpriv", arguments: nobody + ["/usr/bin/test", "-x", Binaries.doorbell])
    if await probe.ending().code == 0 {
      return try ChildProcess(executable: "/usr/bin/setpriv", arguments: nobody + [Binaries.doorbell] + arguments)
    }
    // Another user cannot reach the build folder, as in root's home.
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\""
    return try ChildProcess(
      executable: "/usr/bin/unshare",
      arguments: ["--mount", "/bin/sh", "-c", mount, folder, Binaries.doorbell] + arguments)
  }

  private static func shell(_ script: String, _ folder: String, _ arguments: [String]) throws -> ChildProcess {
    try ChildProcess(executable: "/bin/sh", arguments: ["-c", script, folder, Binaries.doorbell] + arguments)
  }
}
