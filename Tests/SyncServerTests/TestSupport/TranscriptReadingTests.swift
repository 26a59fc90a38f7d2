import HostKit
import KizunaSyncTestSupport
import Testing

/// The grammar of transcripts is closed: what is not understood is an error.
@Suite struct TranscriptReadingTests {
  private func transcript(steps: JSONValue = [], postconditions: JSONValue = []) -> [UInt8] {
    JSONWriter.data([
      "case": "own/1", "title": "t", "cites": [], "priority": "P1", "status": "normative", "fencing": "shared",
      "context": [
        "client_id": "c", "user_id": "u", "schema_version": 1,
        "server": [
          "min_schema_version": 1, "tombstone_ttl_days": 30, "max_pull_scan": 7,
          "tables": ["todos": ["bucket_column": "owner_id", "key_columns": ["a", "b"], "conflict_mode": "hlc"]],
        ],
      ], "steps": steps, "postconditions": postconditions,
    ])
  }

  @Test func readsEveryKindOfStep() throws {
    let write: [String: JSONValue] = ["table": "todos", "pk": "k", "columns": ["n": 1]]
    func step(_ n: Int, _ members: [String: JSONValue]) -> JSONValue {
      .object(members.merging(["n": .int(n)]) { $1 })
    }
    let read = try Transcript(
      parsing: transcript(
        steps: [
          step(1, write.merging(["kind": "server", "op": "upsert", "actor": "d", "hlc": "h"]) { $1 }),
          step(2, ["kind": "server", "op": "delete", "actor": "d", "table": "todos", "pk": "k"]),
          step(3, ["kind": "server", "op": "reap"]),
          step(
            4, write.merging(["kind": "local", "op": "update", "mutation_id": "m", "expect_error": "E"]) { $1 }),
          step(5, ["kind": "rpc", "rpc": "pull", "request": ["q": 1], "response": ["a": 1]]),
          step(6, ["kind": "fault", "fault": "drop-ack", "target": "push", "request": [:]]),
          step(7, ["kind": "fault", "fault": "transport-error", "target": "pull"]),
          step(
            8,
            [
              "kind": "assert",
              "checks": [
                ["check": "local-row", "table": "todos", "pk": "k", "row": nil], ["check": "cursor", "value": "1"],
                ["check": "outbox-depth", "value": 2], ["check": "event", "event": "E"],
                ["check": "no-intermediate-commit"],
              ],
            ]),
        ], postconditions: [["check": "local-row", "table": "todos", "pk": "k", "row": ["n": 1]]]))
    #expect(read.steps.map(\.n) == Array(1...8))
    #expect(read.context.maxPullScan == 7)
    #expect(read.context.tables["todos"]?.keyColumns == ["a", "b"])
    guard case .local(let local) = read.steps[3].kind, case .assert(let checks) = read.steps[7].kind,
      case .fault(.transportError(.pull, request: .none)) = read.steps[6].kind
    else {
      Issue.record("misread")
      return
    }
    #expect(local.expectedError == "E")
    #expect(local.transforms == nil)
    #expect(checks.count == 5)
  }

  @Test(
    arguments: [
      [["n": 1, "kind": "dance"]], [["n": 1, "kind": "server", "op": "explode"]],
      [["n": 1, "kind": "fault", "fault": "fire", "target": "pull"]],
      [["n": 1, "kind": "fault", "fault": "drop-ack", "target": "poll", "request": [:]]],
      [["n": 1, "kind": "assert", "checks": [["check": "mood"]]]], [["n": 2, "kind": "server", "op": "reap"]],
      [["n": 1, "kind": "local", "op": "upsert", "table": "t", "pk": "k", "mutation_id": "m"]],
      [["n": 1, "kind": "rpc", "rpc": "pull", "request": [:]]], ["step"],
    ] as [JSONValue])
  func whatIsUnknownIsAnError(steps: JSONValue) {
    #expect(throws: TranscriptError.self) { try Transcript(parsing: transcript(steps: steps)) }
  }

  @Test func anErrorSaysWhere() {
    #expect(throws: TranscriptError(place: "postconditions.0.check", reason: "unknown: mood")) {
      try Transcript(parsing: transcript(postconditions: [["check": "mood"]]))
    }
  }

  @Test func heldWritesCannotBePlayed() {
    #expect(TranscriptServer.inapplicable(.of("fencing/001-late-commit-delivered")) != nil)
    #expect(TranscriptServer.inapplicable(.of("fencing/002-overlap-redelivery-idempotent")) == nil)
  }
}
