import Glibc
import HostKit
import KizunaDoorbell

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

  /// Runs `body` with a server, which ends when it does or when the process is told to stop.
  static func with<Result>(_ body: (StackChild) async throws -> Result) async throws -> Result {
    let stack = try await start()
    ProcessSignals.shared.onStop {
      stack.process.send(signal: SIGTERM)
      BenchFolder.removeAll()
      ProcessEnd.exit(.interrupted)
    }
    do {
      let result = try await body(stack)
      await stack.process.stop()
      return result
    } catch {
      await stack.process.stop()
      throw error
    }
  }

  /// A gateway of the server's user.
  func configuration(database: String) throws -> GatewayConfiguration {
    GatewayConfiguration(
      url: try ServerURL(url), publishableKey: ConfigurationSecret(literal: publishableKey), database: database,
      tables: [
        "bench": TableDeclaration(bucket: .owner(column: "owner_id"), columns: ["title": .text, "n": .number])
      ],
      session: .password(email: Self.email, password: ConfigurationSecret(literal: Self.password)))
  }

  private static func ownPath() -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
  }
}
