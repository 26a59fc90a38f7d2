import Glibc
import HostKit
import KizunaSyncTestSupport

/// One gateway program behind its fault proxy.
struct SoakHost: Sendable {
  let name: String
  let proxy: FaultProxy
  let process: ChildProcess
  let database: SoakDatabase

  static func start(_ name: String, _ server: SoakServer, folder: String, isQuick: Bool) async throws -> SoakHost {
    let proxy = try FaultProxy(to: server.stack.port)
    let database = "\(folder)/\(name).db"
    let file = "\(folder)/\(name).json"
    // The product's policy, but for the number of attempts: an hour of faults is not what it is meant to bound.
    let policy =
      isQuick
      ? """
      "pollInterval": 2, "resumeThreshold": 5,
      "realtime": {
        "heartbeatInterval": 1, "heartbeatDeadline": 1, "reconnectBase": 0.1, "reconnectCap": 1,
        "reconnectBudget": 1000000,
      },
      """ : "\"realtime\": {\"reconnectBudget\": 1000000},"
    let text = """
      {
        "url": "http://127.0.0.1:\(proxy.port)", "publishableKey": "\(server.stack.publishableKey)",
        "database": "\(database)",
        "tables": {
          "todos": {
            "bucket": {"owner": "owner_id"}, "columns": {"owner_id": "text", "title": "text", "done": "boolean"},
          },
        },
        "session": {"email": "\(SoakServer.email)", "password": "\(SoakServer.password)"},
        \(policy)
      }
      """
    let descriptor = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0, StandardStreams.write(text, to: descriptor) else {
      throw HostFileError(path: file, code: errno)
    }
    close(descriptor)
    let process = try ChildProcess(
      executable: programFolder + "/kizuna-doorbell",
      arguments: ["run", "--config", file, "--log-format", "json", "--log-level", "debug"])
    _ = try await process.line(of: .errors, within: .seconds(150)) { $0.contains("\"event\":\"gateway.ready\"") }
    return SoakHost(name: name, proxy: proxy, process: process, database: SoakDatabase(database))
  }

  /// Where this program is, and the gateway beside it.
  private static let programFolder: String = {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    return HostFile.directory(of: String(decoding: buffer[..<max(0, count)], as: UTF8.self))
  }()

  func has(_ titles: [String]) async throws -> Bool {
    let list = titles.map { "'\($0)'" }.joined(separator: ",")
    return try await database.run("SELECT count(*) FROM todos WHERE title IN (\(list))") == ["\(titles.count)"]
  }

  var isDelivered: Bool {
    get async throws { try await database.run("SELECT count(*) FROM _kizunasync_outbox") == ["0"] }
  }

  func rows() async throws -> [String] {
    try await database.run("SELECT id || ' ' || coalesce(title, '') || ' ' || coalesce(done, 0) FROM todos ORDER BY id")
  }
}
