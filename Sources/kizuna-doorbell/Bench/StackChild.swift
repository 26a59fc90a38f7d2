import Glibc
import HostKit

/// `kizuna-localstack` as a child process, found beside this executable.
struct StackChild: Sendable {
  let process: ChildProcess
  let url: String
  let publishableKey: String

  static let email = "bench@example.com"
  static let password = "bench"

  /// Starts a server with one table `bench`, whose rows belong to `owner_id`.
  ///
  /// - Throws: `CommandFailure` when the executable is missing or the server does not come up.
  static func start() async throws -> StackChild {
    let path = HostFile.directory(of: ownPath()) + "/kizuna-localstack"
    let process: ChildProcess
    do throws(HostFileError) {
      process = try ChildProcess(
        executable: path,
        arguments: ["--port", "0", "--table", "bench:owner_id", "--user", "\(email):\(password)"])
    } catch {
      throw CommandFailure(
        .failure,
        "the development server \(path) cannot be started: \(error.reason); build the product kizuna-localstack")
    }
    do {
      let ready = try JSONValue(parsing: try await process.line(of: .output, within: .seconds(20)))
      guard let url = ready["url"]?.stringValue, let key = ready["publishableKey"]?.stringValue else {
        throw CommandFailure(.failure, "the development server's ready line is not what was expected")
      }
      return StackChild(process: process, url: url, publishableKey: key)
    } catch {
      await process.stop()
      throw error
    }
  }

  private static func ownPath() -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
  }
}
