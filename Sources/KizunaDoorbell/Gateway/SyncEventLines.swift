import HostKit
import KizunaSync

/// What the sync client reports, as lines of a log. They hold codes and names; never a row's values, nor a server's
/// sentence, which may quote them.
enum SyncEventLines {
  struct Line: Equatable {
    var level: HostLog.Level
    var event: String
    var fields: [(String, JSONValue)]

    func write(to log: HostLog) {
      log.log(level, event, fields: fields)
    }

    static func == (one: Line, other: Line) -> Bool {
      one.level == other.level && one.event == other.event
        && one.fields.elementsEqual(other.fields) { $0.0 == $1.0 && $0.1 == $1.1 }
    }
  }

  /// - Returns: nil for what happens all the time.
  static func line(for event: KizunaSyncEngineEvent) -> Line? {
    switch event {
    case .localChanged, .queueDepth: nil
    case .mutationRejected(let id, let reason):
      refused("sync.write_refused", id, reason, "the row was put back as it was; see outbox list")
    case .deadLetter(let id, let reason):
      refused("sync.write_given_up", id, reason, "it failed for good; the row was put back; see outbox list")
    case .batchAborted(let id, let reason):
      refused(
        "sync.group_refused", id, reason, "all writes of its transaction were put back with it; see outbox list")
    case .resetRequired(let reason):
      Line(level: .error, event: "sync.blocked", fields: [("reason", code(reason ?? ""))])
    case .checkpointExpired:
      Line(
        level: .warning, event: "sync.checkpoint_expired",
        fields: [("reason", "the server has forgotten this replica's cursor; everything is read again")])
    case .columnOverwritten(let table, _, let column, _, let winner, let mode):
      Line(
        level: .info, event: "sync.overwritten",
        fields: [
          ("table", .string(table)), ("column", .string(column)), ("by", id(winner)), ("mode", code(mode)),
        ])
    }
  }

  /// A refused write by its entry in the journal, which knows the table, too.
  static func line(for rejection: KizunaSyncRejection) -> Line {
    var line = refused(
      rejection.kind == "DEAD_LETTER" ? "sync.write_given_up" : "sync.write_refused", rejection.mutationId,
      rejection.reason, "the row was put back; see outbox list")
    line.fields.insert(("table", .string(rejection.table)), at: 0)
    return line
  }

  private static func refused(_ event: String, _ id: String, _ reason: String, _ what: JSONValue) -> Line {
    let known = DeadLetterReason.parts(of: reason)
    return Line(
      level: .warning, event: event,
      fields: [
        ("mutation_id", .string(id)), ("reason", known.map { JSONValue.string($0.code) } ?? code(reason)),
        ("message", known.map { JSONValue.string("\($0.sentence); the row was put back; see outbox list") } ?? what),
      ])
  }

  /// A word of the server's; in its place may be a text that quotes a row.
  private static func code(_ word: String) -> JSONValue {
    CodeWord.isCode(word) ? .string(word) : nil
  }

  /// The same for a mutation's id.
  private static func id(_ word: String) -> JSONValue {
    CodeWord.isCode(word.filter { $0 != "-" }) ? .string(word) : nil
  }
}
