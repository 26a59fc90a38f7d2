/// What of one bucket changed, in seq order: for every row and tombstone the place of its newest change.
///
/// An entry that was overtaken by a newer change may linger until `compact`; the reader asks the table whether an entry
/// still stands. Rows change mostly at the end, so both writing and taking a change back are cheap there.
struct SeqLog: Sendable {
  enum Kind: Sendable {
    case row, tombstone
  }

  struct Entry: Sendable {
    let seq: Int64
    let key: ByteKey
    let kind: Kind

    func isSame(as other: Entry) -> Bool { seq == other.seq && kind == other.kind && key == other.key }
  }

  private(set) var entries: ContiguousArray<Entry> = []
  private var overtaken = 0

  /// The index of the first entry whose seq is greater.
  func firstIndex(after seq: Int64) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].seq <= seq { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The indices of the entries of exactly this seq.
  func indices(of seq: Int64) -> Range<Int> {
    firstIndex(after: seq - 1)..<firstIndex(after: seq)
  }

  mutating func insert(_ entry: Entry) {
    if entries.last.map({ $0.seq < entry.seq }) ?? true {
      entries.append(entry)
      return
    }
    let range = indices(of: entry.seq)
    if entries[range].contains(where: entry.isSame) {
      // A change was taken back: the entry it had overtaken stands again.
      overtaken -= 1
    } else {
      entries.insert(entry, at: range.upperBound)
    }
  }

  /// Called when the row or tombstone behind the entry went away or moved to another seq.
  mutating func remove(_ entry: Entry) {
    if entries.last.map(entry.isSame) ?? false {
      entries.removeLast()
    } else {
      overtaken += 1
    }
  }

  /// Drops the overtaken entries once they are the majority.
  mutating func compact(stands: (Entry) -> Bool) {
    guard overtaken > 1000, overtaken > entries.count / 2 else { return }
    entries.removeAll { !stands($0) }
    overtaken = 0
  }
}
