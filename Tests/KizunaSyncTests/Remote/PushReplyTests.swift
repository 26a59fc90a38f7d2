import HostKit
import Testing

@testable import KizunaSync

@Suite struct PushReplyTests {
  private let entries = [
    OutboxEntry(seq: 1, mutationID: "m1", op: .update), OutboxEntry(seq: 2, mutationID: "m2", op: .update),
  ]
  private var group: [OutboxEntry] {
    entries.map {
      var entry = $0
      entry.group = "g"
      return entry
    }
  }

  @Test func verdictsAreReadInOrder() throws {
    let reply = try PushReply(
      parsing: Array(
        #"{"verdicts":[{"mutation_id":"M1","verdict":"applied"},{"mutation_id":"m2","verdict":"rejected","reason":"RLS_DENIED","server_row":null}],"batch":null,"more":1}"#
          .utf8), answering: entries)
    #expect(
      reply
        == .verdicts([
          .init(mutationID: "m1", reason: nil, serverRow: nil),
          .init(mutationID: "m2", reason: "RLS_DENIED", serverRow: nil),
        ]))
  }

  /// A column of a row that no value can hold must not keep the queue waiting for ever.
  @Test func aRowThatCannotBeHeldCostsOnlyTheColumn() throws {
    let deep = String(repeating: "[", count: 2_000) + String(repeating: "]", count: 2_000)
    for value in [deep, #"{"\u00e9":1,"e\u0301":2}"#] {
      let reply = try PushReply(
        parsing: Array(
          #"""
          {"verdicts":[{"mutation_id":"m1","verdict":"applied","server_row":{"id":"a","meta":\#(value),"n":1}},
          {"mutation_id":"m2","verdict":"rejected","reason":"CONSTRAINT","server_row":{"meta":\#(value)}}]}
          """#.utf8), answering: entries)
      #expect(
        reply
          == .verdicts([
            .init(mutationID: "m1", reason: nil, serverRow: ["id": "a", "n": 1]),
            .init(mutationID: "m2", reason: "CONSTRAINT", serverRow: [:]),
          ]))
    }
    #expect(throws: RemoteFailure.self) {
      try PushReply(parsing: Array(#"{"verdicts":[{"mutation_id":"m1","more":[\#(deep)}"#.utf8), answering: entries)
    }
  }

  @Test func abortsAndSignalsAreRead() throws {
    let abort =
      #"{"batch":{"outcome":"aborted","offender_mutation_id":"m2","reason":"CONSTRAINT","server_row":{"a":1}}}"#
    #expect(
      try PushReply(parsing: Array(abort.utf8), answering: group)
        == .aborted(offender: "m2", reason: "CONSTRAINT", serverRow: ["a": 1]))
    #expect(
      try PushReply(parsing: Array(#"{"signal":{"type":"RESET_REQUIRED"}}"#.utf8), answering: entries) == .resetRequired
    )
  }

  @Test(arguments: [
    ("nonsense", "JSON"), ("[]", "JSON"), ("{}", "MALFORMED_PUSH_RESPONSE"),
    (#"{"verdicts":[],"signal":{"type":"RESET_REQUIRED"}}"#, "MALFORMED_PUSH_RESPONSE"),
    (#"{"verdicts":{}}"#, "MALFORMED_PUSH_RESPONSE"), (#"{"verdicts":[]}"#, "VERDICT_BIJECTION"),
    (
      #"{"verdicts":[{"mutation_id":"m2","verdict":"applied"},{"mutation_id":"m1","verdict":"applied"}]}"#,
      "VERDICT_BIJECTION"
    ),
    (
      #"{"verdicts":[{"mutation_id":"m1","verdict":"maybe"},{"mutation_id":"m2","verdict":"applied"}]}"#,
      "UNKNOWN_VERDICT_REASON"
    ),
    (
      #"{"verdicts":[{"mutation_id":"m1","verdict":"rejected","reason":"NEW"},{"mutation_id":"m2","verdict":"applied"}]}"#,
      "UNKNOWN_VERDICT_REASON"
    ),
    (#"{"signal":{"type":"CHECKPOINT_EXPIRED"}}"#, "UNKNOWN_SIGNAL"),
    (
      #"{"batch":{"outcome":"aborted","offender_mutation_id":"m1","reason":"CONSTRAINT","server_row":null}}"#,
      "MALFORMED_PUSH_RESPONSE"
    ),
  ])
  func anythingElseIsRefusedWhole(body: String, code: String) {
    let failure = #expect(throws: RemoteFailure.self) { try PushReply(parsing: Array(body.utf8), answering: entries) }
    #expect(failure?.error.code == code)
  }

  @Test func aStrangerIsNoOffender() {
    let failure = #expect(throws: RemoteFailure.self) {
      try PushReply(
        parsing: Array(#"{"batch":{"outcome":"aborted","offender_mutation_id":"m9","reason":"CONSTRAINT"}}"#.utf8),
        answering: group)
    }
    #expect(failure?.error.code == "UNKNOWN_BATCH_OFFENDER")
  }
}
