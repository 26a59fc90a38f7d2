import HTTPClient
import HostKit
import KizunaSyncTestSupport
import SyncServer

@testable import KizunaSync

/// The in-memory server.
final class ModelServer: ConvergenceServer {
  private let state: Locked<SyncServerState>

  init() {
    let tables = [
      "t": SyncTable(
        bucketColumn: "owner_id", columns: ["owner_id": .text, "a": .integer, "b": .integer, "c": .text]),
      // A row's reader is not its bucket: it may be hidden without a tombstone.
      "p": SyncTable(
        bucketColumn: "team", policy: .owner(column: "reader"),
        columns: ["team": .text, "reader": .text, "a": .integer]),
      "log": SyncTable(bucketColumn: "owner_id", columns: ["owner_id": .text, "n": .integer]),
    ]
    state = Locked(SyncServerState(configuration: SyncServerConfiguration(tables: tables)))
  }

  func remote(for user: String) -> KizunaSyncRemoteConfig {
    KizunaSyncRemoteConfig(url: "http://127.0.0.1:1", publishableKey: "key", accessToken: TestToken.user(user))
  }

  func answer(
    _ request: HTTPRequest, from user: String, isRepeated: Bool, in world: ConvergenceWorld
  ) async throws -> HTTPResponse {
    guard let body = request.json else { throw HTTPError(.other, "no body") }
    let answer = state.withLock { state in
      func serve() -> RPCAnswer {
        request.path.hasSuffix("push")
          ? state.push(body, caller: .user(user), now: 0) : state.pull(body, caller: .user(user))
      }
      if isRepeated { _ = serve() }
      return serve()
    }
    return .json(answer.body, status: answer.status)
  }

  func rows(_ table: String) async throws -> [String: RowMap] {
    state.withLock { state in
      let prefix = table + " "
      // A line of a row: `t key @3 in bucket {…}`.
      let keys = state.dump().split(separator: "\n").filter { $0.hasPrefix(prefix) }
        .map { String($0.dropFirst(prefix.count).prefix { $0 != " " }) }
      return Dictionary(keys.compactMap { key in state.row(table, key).map { (key, $0) } }, uniquingKeysWith: { $1 })
    }
  }

  func shown(to user: String, team: String) async throws -> ShownRows {
    let (t, p, log) = (try await rows("t"), try await rows("p"), try await rows("log"))
    let isOwn = { (row: RowMap) in row["owner_id"] == .string(user) }
    return ShownRows(tables: [
      "t": t.filter { isOwn($1) }, "log": log.filter { isOwn($1) },
      "p": p.filter { $1["team"] == .string(team) && $1["reader"] == .string(user) },
    ])
  }

  func verdicts() async throws -> [String: String] {
    let lines = state.withLock { $0.dump() }.split(separator: "\n").filter { $0.hasPrefix("verdict ") }
    return lines.reduce(into: [:]) { found, line in
      let words = line.split(separator: " ")
      found[String(words[1])] = String(words[2])
    }
  }

  func disturb(_ random: inout SeededRandom, in world: ConvergenceWorld) async throws {
    let key = random.pick(ConvergenceProgram.keys)
    let user = JSONValue.string(random.pick(ConvergenceProgram.users))
    let number = JSONValue.int(random.below(10))
    let write: SyncWrite =
      switch random.below(10) {
      case ..<4: .upsert(table: "t", pk: key, columns: ["owner_id": user, "a": number])
      case 4: .delete(table: "t", pk: key)
      case 5: .upsert(table: "p", pk: key, columns: ["reader": user])
      case 6: .delete(table: "p", pk: key)
      default:
        .upsert(
          table: "p", pk: key,
          columns: ["team": .string(random.pick(ConvergenceProgram.teams)), "reader": user, "a": number])
      }
    let isMade = state.withLock { state in
      // Half a row of `p` would be nobody's.
      if case .upsert("p", _, let columns, _) = write, columns.count == 1, state.row("p", key) == nil { return false }
      // Deleting what is not there is refused; that is nobody's concern here.
      try? state.apply([write], now: 0)
      return true
    }
    if isMade { world.note("server \(write)") }
  }

  func reap() async throws { state.withLock { $0.reap(now: nil) } }
  func settle(in world: ConvergenceWorld) async throws {}
  func problem() async throws -> String? { nil }
  func close() async {}
}
