import HostKit
import SyncServer

/// What a harness must know about a case that its file does not say.
public struct TranscriptExtras: Sendable {
  /// The seq of the first change; everything below it is committed history.
  public var firstSeq: Int64 = 1
  /// Operations on the server before step 1.
  public var history: [Transcript.ServerOperation] = []
  /// Server steps that take their seq at once and become visible only after a later step.
  public var heldWrites: [Int: Int] = [:]
  /// Rows the client already holds before step 1.
  public var clientRows: [ClientRow] = []
  /// Column types of the server's tables.
  public var columns: [String: [String: ColumnType]] = [:]
  public var pullOnlyTables: Set<String> = []

  public struct ClientRow: Sendable {
    public var table: String
    public var pk: String
    public var row: [String: JSONValue]
  }

  public init() {}

  /// The extras of a case; those of a case that needs none are empty.
  public static func of(_ name: String) -> TranscriptExtras {
    var extras = TranscriptExtras()
    switch name {
    case "lifecycle/001-checkpoint-expired-rehydrate":
      let lost = todo("pre-transcript row")
      extras.history = [
        .upsert(table: "todos", pk: key(1), columns: lost, hlc: nil), .delete(table: "todos", pk: key(1)), .reap,
        .upsert(table: "todos", pk: key(2), columns: todo("created while the client was offline"), hlc: nil),
      ]
      extras.clientRows = [ClientRow(table: "todos", pk: key(1), row: lost)]
    case "lifecycle/005-bootstrap-after-reap-pages-to-completion":
      extras.history = [
        .upsert(table: "todos", pk: key(1), columns: todo("row one"), hlc: nil),
        .upsert(table: "todos", pk: key(2), columns: todo("row two"), hlc: nil),
        .upsert(table: "todos", pk: key(3), columns: todo("row three"), hlc: nil),
        .delete(table: "todos", pk: key(3)), .reap,
      ]
    case "fencing/001-late-commit-delivered":
      extras.firstSeq = 5
      extras.heldWrites = [1: 5]
    case "fencing/003-two-holes-both-delivered":
      extras.firstSeq = 5
      extras.heldWrites = [1: 6, 2: 6]
    case "pull/006-integer-key-pull-only":
      extras.columns = ["notices": ["id": .bigint]]
      extras.pullOnlyTables = ["notices"]
    case "push/008-composite-key-writes":
      extras.columns = ["seats": ["hall": .bigint, "seat": .integer]]
    default:
      if name.hasPrefix("increment/") || name.hasPrefix("array/") {
        extras.columns = ["todos": ["likes": .integer, "labels": .textArray, "title": .text, "done": .boolean]]
      }
    }
    return extras
  }

  private static func key(_ n: Int) -> String { "00000000-0000-4000-8000-e1000000000\(n)" }

  private static func todo(_ title: String) -> [String: JSONValue] {
    ["done": false, "owner_id": "00000000-0000-4000-8000-a10000000001", "title": .string(title)]
  }
}
