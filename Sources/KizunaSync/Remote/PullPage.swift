import HostKit

/// One answer of `pull` (Kizuna wire contract §4.2), kept as the bytes that came. Checked as a whole when it arrives;
/// rows are then taken from the bytes one at a time, so that a page never becomes objects.
struct PullPage {
  enum Signal: String {
    case resetRequired = "RESET_REQUIRED"
    case checkpointExpired = "CHECKPOINT_EXPIRED"
  }

  /// Where a row or tombstone lies in the bytes.
  struct Item {
    fileprivate(set) var table = ""
    /// The string token of the key, quotes included.
    fileprivate(set) var pk = 0..<0
    /// The key token holds no escape, so its bytes are its text.
    fileprivate(set) var isPlainKey = false
    /// The row object; nil for a tombstone.
    fileprivate(set) var row: Range<Int>?
    fileprivate var isDeleted = false

    func key(in bytes: UnsafeRawBufferPointer) throws -> String {
      var cursor = JSONCursor(bytes, at: pk.lowerBound)
      return try cursor.readString()
    }
  }

  struct Conflict: Equatable {
    var table: String
    var pk: String
    var column: String
    var loser: JSONValue
    var winner: String
    var winnerSeq: String
    var mode: String
  }

  let bytes: [UInt8]
  private(set) var cursor = ""
  private(set) var hasMore = false
  private(set) var signal: Signal?
  private(set) var rowCount = 0
  private(set) var tombstoneCount = 0
  private(set) var conflicts: [Conflict] = []
  private var rows: Range<Int>?
  private var tombstones: Range<Int>?

  /// Neither a row nor a deletion is in it.
  var isEmpty: Bool { rowCount == 0 && tombstoneCount == 0 }

  /// - Throws: `RemoteFailure` with `JSON` or `UNKNOWN_SIGNAL`.
  init(checking bytes: [UInt8]) throws {
    try self.init(bytes)
    // Kept, it would be sent back, and no server could read it. That of a signal is not kept.
    guard signal != nil || CursorToken.isWellFormed(cursor) else {
      throw Self.malformed("its cursor is none that a server could read again")
    }
    do {
      var (rows, tombstones) = (0, 0)
      try forEachItem { _, _ in
        rows += 1
      } tombstones: { _, _ in
        tombstones += 1
      }
      (rowCount, tombstoneCount) = (rows, tombstones)
    } catch let error as JSONSyntaxError {
      throw Self.malformed(error.description)
    }
  }

  /// Finds the parts of an answer that has been checked before.
  init(_ bytes: [UInt8]) throws {
    self.bytes = bytes
    do {
      try bytes.withUnsafeBytes { try readMembers($0) }
    } catch let error as JSONSyntaxError {
      throw Self.malformed(error.description)
    }
  }

  private static func malformed(_ what: String) -> RemoteFailure {
    RemoteFailure.malformed(.json, "the answer of kizunasync.pull is unusable: \(what)")
  }

  private mutating func readMembers(_ buffer: UnsafeRawBufferPointer) throws {
    var reader = JSONCursor(buffer)
    guard reader.peek() == UInt8(ascii: "{") else { throw RemoteFailure.notJSON(function: "pull") }
    var cursor: String?
    var hasMore: Bool?
    var signal: JSONValue = .null
    var conflicts: JSONValue = .null
    var rows: Range<Int>?
    var tombstones: Range<Int>?
    try reader.forEachMember { name, value in
      switch name {
      case "cursor": cursor = try value.readValue().stringValue
      case "has_more": hasMore = try value.readValue().boolValue
      case "signal": signal = try value.readValue()
      // The value that lost is only shown.
      case "conflicts": conflicts = try value.readValue(leavingOutDownTo: 2)
      case "rows": rows = try Self.arrayRange(&value)
      case "tombstones": tombstones = try Self.arrayRange(&value)
      default: try value.skipValue()
      }
    }
    try reader.expectEnd()
    guard let cursor, let hasMore else { throw Self.malformed("cursor or has_more is missing") }
    (self.cursor, self.hasMore, self.rows, self.tombstones) = (cursor, hasMore, rows, tombstones)
    if !signal.isNull {
      guard let known = signal["type"]?.stringValue.flatMap(Signal.init(rawValue:)) else {
        throw RemoteFailure.malformed(.unknownSignal, "kizunasync.pull sent a signal this client does not know")
      }
      self.signal = known
    }
    self.conflicts = try (conflicts.arrayValue ?? []).map(Self.conflict)
  }

  private static func arrayRange(_ value: inout JSONCursor) throws -> Range<Int>? {
    let isArray = value.peek() == UInt8(ascii: "[")
    let isNull = value.peek() == UInt8(ascii: "n")
    let range = try value.skipValue()
    guard isArray || isNull else { throw malformed("rows or tombstones is not an array") }
    return isArray ? range : nil
  }

  private static func conflict(_ value: JSONValue) throws -> Conflict {
    func text(_ name: String) throws -> String {
      guard let text = value[name]?.stringValue else { throw malformed("a conflict lacks \(name)") }
      return text
    }
    return Conflict(
      table: try text("table"), pk: try text("pk"), column: try text("column_name"),
      loser: value["loser_value"] ?? .null,
      winner: try text("winner_mutation_id"), winnerSeq: try text("winner_seq"), mode: try text("conflict_mode"))
  }

  /// Calls `rows` for each row and then `tombstones` for each deletion, the order in which they are applied.
  func forEachItem(
    _ rows: (Item, UnsafeRawBufferPointer) throws -> Void,
    tombstones: (Item, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    try bytes.withUnsafeBytes { buffer in
      if let range = self.rows { try Self.forEach(in: range, buffer, isRow: true, rows) }
      if let range = self.tombstones { try Self.forEach(in: range, buffer, isRow: false, tombstones) }
    }
  }

  private static func forEach(
    in range: Range<Int>, _ buffer: UnsafeRawBufferPointer, isRow: Bool,
    _ body: (Item, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    var reader = JSONCursor(buffer, at: range.lowerBound)
    try reader.forEachElement { element in
      var item = Item()
      guard element.peek() == UInt8(ascii: "{") else { throw malformed("a row is not an object") }
      try element.forEachMember { name, value in
        switch name {
        case "table": item.table = try value.readString()
        case "pk":
          _ = value.peek()
          let start = value.offset
          item.isPlainKey = try value.skipString()
          item.pk = start..<value.offset
        case "row" where isRow, "columns" where isRow && item.row == nil:
          guard value.peek() == UInt8(ascii: "{") else { throw malformed("a row has no columns") }
          item.row = try value.skipValue()
        case "deleted": item.isDeleted = try value.readValue().boolValue ?? false
        default: try value.skipValue()
        }
      }
      guard !item.table.isEmpty, item.pk.count > 2 else { throw malformed("a row lacks table or pk") }
      if item.isDeleted { item.row = nil }
      guard !isRow || item.row != nil || item.isDeleted else { throw malformed("a row has no columns") }
      try body(item, buffer)
    }
  }
}
