import HostKit

/// The tables whose rows must be read again from the start, each for itself and without the others, because this file
/// no longer tells what the server's cursor says it holds.
struct Rereads: Equatable {
  /// What becomes of local rows that differ from the server's and that no queued write accounts for.
  enum Keep: Int, Comparable {
    /// The server decides: no write can have gone unseen.
    case nothing = 0
    /// Rows the server neither has nor deleted are queued as inserts. Rows it has are taken as it sends them: how old the
    /// local ones are is not known.
    case rows = 1
    /// Cells that differ are queued as updates too: until now the table was in step, so nobody but this host changed them.
    case changes = 2

    static func < (left: Keep, right: Keep) -> Bool { left.rawValue < right.rawValue }
  }

  struct Reread: Equatable {
    var keep: Keep
    /// Columns the table did not have before: what they hold is the server's to say.
    var fresh: Set<String> = []
    /// Rows with queued writes are still to be compared with what the queue makes of them: before a push or a pull shows
    /// them anew.
    var isQueueDue = false
  }

  private(set) var tables: [String: Reread] = [:]

  var isEmpty: Bool { tables.isEmpty }

  subscript(table: String) -> Reread? { tables[table] }

  /// Adds a reason to read the table again; of several the one that keeps most holds.
  mutating func ask(_ table: String, keep: Keep, fresh: Set<String> = []) {
    let known = tables[table]
    tables[table] = Reread(
      keep: max(keep, known?.keep ?? .nothing), fresh: fresh.union(known?.fresh ?? []),
      isQueueDue: keep == .changes || known?.isQueueDue ?? false)
  }

  /// The table is empty now: there is nothing of it to keep.
  mutating func startOver(_ table: String) {
    tables[table] = Reread(keep: .nothing)
  }

  /// Rows of the server are passed over: what differs from now on may be older than they are.
  mutating func fallBehind(_ table: String) {
    let known = tables[table]
    tables[table] = Reread(keep: min(known?.keep ?? .nothing, .rows), fresh: known?.fresh ?? [])
  }

  mutating func queueWasCompared(_ table: String) {
    tables[table]?.isQueueDue = false
  }

  mutating func finish(_ table: String) {
    tables[table] = nil
  }

  /// Everything was read again from the start: only what is to be compared with local rows is left. The comparison no
  /// longer can tell a local change from one the transfer skipped.
  mutating func everythingWasRead() {
    tables = tables.filter { $0.value.keep > .nothing }.mapValues { Reread(keep: min($0.keep, .rows), fresh: $0.fresh) }
  }

  // MARK: As text

  init() {}

  /// Text that is none of ours reads as nothing.
  init(_ text: String?) {
    guard let object = text.flatMap({ try? JSONValue(parsing: $0) })?.objectValue else { return }
    for (table, value) in object {
      guard let keep = value["keep"]?.intValue.flatMap(Keep.init(rawValue:)) else { continue }
      let fresh = value["fresh"]?.arrayValue?.compactMap(\.stringValue) ?? []
      tables[table] = Reread(keep: keep, fresh: Set(fresh), isQueueDue: value["queue"] == true)
    }
  }

  /// nil when there is nothing to read.
  var text: String? {
    if tables.isEmpty { return nil }
    return JSONWriter.text(
      .object(
        tables.mapValues { reread in
          [
            "keep": .int(reread.keep.rawValue), "fresh": .array(reread.fresh.sorted().map(JSONValue.string)),
            "queue": .bool(reread.isQueueDue),
          ]
        }))
  }
}

extension Database {
  func rereads() throws -> Rereads { Rereads(try meta(.reread).text) }
}

extension Replica {
  func changeRereads(_ body: (inout Rereads) -> Void) throws {
    let known = try database.rereads()
    var rereads = known
    body(&rereads)
    if rereads != known { try database.setMeta(.reread, SQLiteValue(rereads.text)) }
  }
}
