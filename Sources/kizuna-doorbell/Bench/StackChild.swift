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
  /// Carries the database's address to the server, where other users do not see it.
  private static let variable = "KIZUNA_BENCH_DATABASE"

  /// Starts a server with one table `bench`, whose rows belong to `owner_id`.
  ///
  /// - Throws: `CommandFailure` when the executable is missing or the server does not come up.
  /// - Parameter database: the address of a PostgreSQL that it serves; nil for the embedded server.
  static func start(database: String? = nil) async throws -> StackChild {
    let path = HostFile.directory(of: ownPath()) + "/kizuna-localstack"
    let process: ChildProcess
    do throws(HostFileError) {
      process = try ChildProcess(
        executable: path,
        arguments: ["--port", "0", "--user", "\(email):\(password)"]
          + (database == nil ? ["--table", "bench:owner_id"] : ["--postgres", "env:\(variable)"]),
        environment: database.map { [variable: $0] } ?? [:])
    } catch {
      throw CommandFailure(
        .failure,
        "the development server \(path) cannot be started: \(error.reason); build the product kizuna-localstack")
    }
    do {
      let line: String
      do {
        line = try await process.line(of: .output, within: .seconds(20))
      } catch {
        let ending = await process.stop()
        throw CommandFailure(
          .failure, ending.errors.last ?? "the development server did not come up within 20 s and gave no reason")
      }
      let ready = try JSONValue(parsing: line)
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
  static func with<Result>(
    database: String? = nil, _ body: (StackChild) async throws -> Result
  ) async throws -> Result {
    let stack = try await start(database: database)
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
