/// What the rest of the capture journal and the notes say of rows that were noted, in the order in which it happened.
///
/// Whether a row was displaced cannot always be told from its cells: a partial index binds some rows only, and a generated
/// column is not journalled. But a row that is changed or noted later was still there.
struct JournalSightings {
  private struct Sighting {
    /// A row's number in the journal twice; a note comes after it and before the next.
    var place: Int64
    var isThere: Bool
  }

  /// The keys it knows of.
  private(set) var keys: Set<[SQLiteValue]>
  private var sightings: [[SQLiteValue]: [Sighting]] = [:]

  /// - Parameter keys: beside those of all notes.
  init(_ replica: Replica, _ layout: TableLayout, from seq: Int64, of keys: Set<[SQLiteValue]>) throws {
    var keys = keys
    var sightings: [[SQLiteValue]: [Sighting]] = [:]
    let slots = layout.keyPositions.map { ", c\(layout.columns[$0].slot)" }.joined()
    try replica.database.forEachRow(
      "SELECT base_seq\(slots) FROM _kizunasync_displaced WHERE tbl = ?", [.text(layout.name)]
    ) { row in
      let key = Array(row.row().dropFirst())
      keys.insert(key)
      sightings[key, default: []].append(Sighting(place: 2 * row.int64(0) + 1, isThere: true))
    }
    try JournalAhead.forEachKey(replica, layout, from: seq) { seq, isOld, key in
      // The old key of a journal row comes first.
      guard keys.contains(key), sightings[key]?.last?.place != 2 * seq else { return }
      sightings[key, default: []].append(Sighting(place: 2 * seq, isThere: isOld))
    }
    self.keys = keys
    self.sightings = sightings.mapValues { $0.sorted { $0.place < $1.place } }
  }

  /// Whether a row of the key was there after the journal row `seq`; nil if nothing more is told of it.
  func isThere(_ key: [SQLiteValue], after seq: Int64) -> Bool? {
    guard let list = sightings[key] else { return nil }
    var range = list.startIndex..<list.endIndex
    while !range.isEmpty {
      let middle = range.lowerBound + range.count / 2
      range = list[middle].place > 2 * seq ? range.lowerBound..<middle : middle + 1..<range.upperBound
    }
    return range.lowerBound < list.endIndex ? list[range.lowerBound].isThere : nil
  }
}
