import HostKit
import KizunaSync
import Testing

@testable import KizunaDoorbell

@Suite struct SyncEventLinesTests {
  private func fields(_ event: KizunaSyncEngineEvent) -> [String: JSONValue] {
    Dictionary(uniqueKeysWithValues: SyncEventLines.line(for: event)?.fields ?? [])
  }

  @Test func whatHappensAllTheTimeIsNoLine() {
    #expect(SyncEventLines.line(for: .localChanged) == nil)
    #expect(SyncEventLines.line(for: .queueDepth(depth: 3)) == nil)
  }

  @Test(arguments: [
    (KizunaSyncEngineEvent.mutationRejected(mutationId: "m", reason: "RLS_DENIED"), "sync.write_refused", "RLS_DENIED"),
    (.deadLetter(mutationId: "m", reason: "PERMANENT_TRANSPORT"), "sync.write_given_up", "PERMANENT_TRANSPORT"),
    (.batchAborted(offenderMutationId: "m", reason: "CONSTRAINT"), "sync.group_refused", "CONSTRAINT"),
  ])
  func aRefusalNamesTheWriteAndTheReason(event: KizunaSyncEngineEvent, name: String, reason: String) {
    let line = SyncEventLines.line(for: event)
    #expect(line?.level == .warning)
    #expect(line?.event == name)
    #expect(fields(event)["mutation_id"] == "m")
    #expect(fields(event)["reason"] == .string(reason))
  }

  /// What a person needs to know of a write that can never be sent.
  @Test(arguments: [
    (
      DeadLetterReason.tooLarge(table: "todos", writes: 1, bytes: 73_400_512), "TOO_LARGE", ["todos", "73400512 bytes"]
    ),
    (.tooLarge(table: "todos", writes: 7, bytes: 73_400_512), "TOO_LARGE", ["7 writes", "todos", "73400512 bytes"]),
    (.tooManyWrites(600), "TOO_MANY_WRITES", ["600 writes", "500", "max_batch_size"]),
  ])
  func ourOwnReasonsAreSpelled(reason: DeadLetterReason, code: String, words: [String]) {
    let fields = fields(.deadLetter(mutationId: "m", reason: reason.text))
    #expect(fields["reason"] == .string(code))
    for word in words { #expect(fields["message"]?.stringValue?.contains(word) == true, "\(fields)") }
  }

  /// A constraint's message quotes the row.
  @Test func aServersSentenceStaysOut() {
    let event = KizunaSyncEngineEvent.deadLetter(mutationId: "m", reason: "Key (title)=(secret) already exists.")
    #expect(fields(event)["reason"] == .null)
    let rejection = KizunaSyncRejection(
      mutationId: "m", table: "todos", pk: "1", kind: "DEAD_LETTER", reason: "Key (title)=(secret) already exists.",
      changedColumns: ["title"], serverRowJson: "", at: 0, dismissed: false)
    let line = SyncEventLines.line(for: rejection)
    #expect(line.event == "sync.write_given_up")
    #expect(!line.fields.contains { "\($0.1)".contains("secret") })
    #expect(line.fields.first?.1 == "todos")
  }

  @Test func anOverwrittenValueStaysOut() {
    let event = KizunaSyncEngineEvent.columnOverwritten(
      table: "todos", pk: "1", column: "title", loserValueJson: "\"secret\"", winnerMutationId: "w",
      conflictMode: "arrival")
    #expect(fields(event) == ["table": "todos", "column": "title", "by": "w", "mode": "arrival"])
  }
}
