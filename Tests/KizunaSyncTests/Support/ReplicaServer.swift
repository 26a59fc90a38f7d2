import HostKit
import SyncServer

@testable import KizunaSync

/// The server model beside a replica, without engine and network: pushes and pulls are calls.
struct ReplicaServer {
  var state: SyncServerState
  private let caller = Caller.user(owner)

  init(_ tables: [String: SyncTable]) {
    state = SyncServerState(configuration: SyncServerConfiguration(tables: tables))
  }

  /// Sends the head of the queue until nothing is left.
  /// - Returns: the reasons of what was refused.
  @discardableResult
  mutating func push(from replica: Replica, rounds: Int = .max) throws -> [String] {
    var refused: [String] = []
    for _ in 0..<min(rounds, 1000) {
      let taken = try replica.take(limit: 500)
      if taken.entries.isEmpty { return refused }
      let request = PushRequest(
        entries: taken.entries, lastMutationID: taken.lastMutationID, clientID: taken.clientID, schemaVersion: 1)
      let answer = state.push(try JSONValue(parsing: request.body()), caller: caller, now: 0)
      switch try PushReply(parsing: JSONWriter.data(answer.body), answering: taken.entries) {
      case .verdicts(let verdicts):
        refused += verdicts.compactMap(\.reason)
        _ = try replica.settle(verdicts, of: taken)
      case .aborted(let offender, let reason, let row):
        refused.append(reason)
        _ = try replica.abort(taken, offender: offender, reason: reason, serverRow: row)
      case .resetRequired:
        return refused + ["RESET_REQUIRED"]
      }
    }
    return refused
  }

  /// One closed checkpoint of the whole tables.
  mutating func pull(into replica: Replica) throws {
    let buckets = replica.settings.tables.sorted { $0.key < $1.key }.map { name, config in
      PullRequest.Bucket(table: name, params: config.bucketColumn.map { [$0: .string(owner)] } ?? [:])
    }
    let position = try replica.pullPosition(asking: buckets)
    let request = PullRequest(
      buckets: buckets, cursor: position.cursor, clientID: position.clientID, schemaVersion: 1, limit: 100_000)
    let answer = state.pull(try JSONValue(parsing: request.body()), caller: caller)
    _ = try replica.close(with: try PullPage(checking: JSONWriter.data(answer.body)), at: position)
  }

  /// Pushes everything, then pulls.
  @discardableResult
  mutating func sync(_ replica: Replica) throws -> [String] {
    let refused = try push(from: replica)
    try pull(into: replica)
    return refused
  }

  func row(_ table: String, _ pk: String) -> RowMap? { state.row(table, pk) }
}
