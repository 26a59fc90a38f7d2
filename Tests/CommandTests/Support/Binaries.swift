import Glibc
import HostKit

/// The executables under test, which SwiftPM builds into the folder of the test bundle.
enum Binaries {
  static let folder: String = {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    return HostFile.directory(of: String(decoding: buffer[..<max(0, count)], as: UTF8.self))
  }()

  static var doorbell: String { folder + "/kizuna-doorbell" }
  static var localStack: String { folder + "/kizuna-localstack" }

  /// Runs `kizuna-doorbell` to its end.
  static func doorbell(_ arguments: String...) async throws -> ChildProcess.Ending {
    await (try ChildProcess(executable: doorbell, arguments: arguments)).ending()
  }
}
