import Glibc
import HTTPClient
import HostKit
import Synchronization

/// A development server of its own process that keeps its state on disk and can be killed and started again at the same
/// address.
final class DurableStack: Sendable {
  let url: String
  let publishableKey: String
  private let arguments: [String]
  private let process: Mutex<ChildProcess>
  private let http = CurlHTTPClient(CurlHTTPClient.Settings(proxy: .direct))

  static func start(directory: String) async throws -> DurableStack {
    let arguments = [
      "--directory", directory, "--table", "todos:owner_id", "--user", "\(Stack.email):\(Stack.password)",
    ]
    let (process, ready) = try await launch(arguments + ["--port", "0"])
    guard let url = ready["url"]?.stringValue, let key = ready["publishableKey"]?.stringValue,
      let port = url.split(separator: ":").last
    else { throw ChildProcessError(message: "the ready line lacks a member") }
    return DurableStack(process, url: url, publishableKey: key, arguments: arguments + ["--port", String(port)])
  }

  private init(_ process: ChildProcess, url: String, publishableKey: String, arguments: [String]) {
    self.process = Mutex(process)
    self.url = url
    self.publishableKey = publishableKey
    self.arguments = arguments
  }

  private static func launch(_ arguments: [String]) async throws -> (ChildProcess, JSONValue) {
    let process = try ChildProcess(executable: Binaries.localStack, arguments: arguments)
    return (process, try JSONValue(parsing: await process.line(of: .output, within: .seconds(150))))
  }

  /// Ends the process without a chance to say anything, and starts it again.
  func killAndRestart() async throws {
    let old = process.withLock { $0 }
    old.send(signal: SIGKILL)
    _ = await old.ending()
    let (new, _) = try await Self.launch(arguments)
    process.withLock { $0 = new }
  }

  func stop() async {
    await process.withLock { $0 }.stop()
    await http.shutdown()
  }

  /// What the server has counted since it was last started.
  struct Counts: Equatable {
    var members: Int
    var acceptedJoins: Int
    var repeatedJoins: Int
  }

  func counts(of topic: String) async throws -> Counts {
    let answer = try await http.send(HTTPRequest(method: "GET", url: "\(url)/_localstack/realtime"))
    let value = try JSONValue(parsing: String(decoding: answer.body, as: UTF8.self))
    func number(_ value: JSONValue?) -> Int {
      if case .number(let number)? = value { Int(number.int64 ?? 0) } else { 0 }
    }
    return Counts(
      members: number(value["topics"]?[topic]?["members"]),
      acceptedJoins: number(value["topics"]?[topic]?["acceptedJoins"]), repeatedJoins: number(value["repeatedJoins"]))
  }
}
