/// One committed transaction.
public struct SyncCommit: Sendable {
  /// Everything it changed, in order: what a journal must keep.
  public let changes: [StateChange]
  /// The tables whose rows changed, sorted: who has to be rung. Empty when only grants or verdicts were recorded.
  public let tables: [String]
  /// The seqs it drew; nil when it drew none.
  public let seqs: ClosedRange<Int64>?
  /// `CLOCK_MONOTONIC` nanoseconds.
  public let committedAt: UInt64

  init(changes: [StateChange], before: Int64, after: Int64, committedAt: UInt64) {
    self.changes = changes
    self.committedAt = committedAt
    seqs = before < after ? before...(after - 1) : nil
    var tables: Set<String> = []
    if seqs != nil {
      for change in changes {
        switch change {
        case .row(let table, _, _): tables.insert(table)
        case .tombstone(let table, _, .some): tables.insert(table)
        default: break
        }
      }
    }
    self.tables = tables.sorted()
  }
}

/// When each seq was committed, for the last of them.
struct CommitTimes: Sendable {
  private let capacity: Int
  private var times: [(seq: Int64, at: UInt64)] = []

  init(capacity: Int) {
    self.capacity = capacity
  }

  mutating func record(_ commit: SyncCommit) {
    guard let seqs = commit.seqs else { return }
    for seq in seqs.suffix(capacity) { times.append((seq, commit.committedAt)) }
    if times.count > 2 * capacity { times.removeFirst(times.count - capacity) }
  }

  func after(_ seq: Int64) -> [(seq: Int64, at: UInt64)] {
    let kept = times.suffix(capacity)
    var (low, high) = (kept.startIndex, kept.endIndex)
    while low < high {
      let middle = (low + high) / 2
      if kept[middle].seq <= seq { low = middle + 1 } else { high = middle }
    }
    return Array(kept[low...])
  }
}
