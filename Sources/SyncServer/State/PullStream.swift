import HostKit

/// The changes behind a cursor, over all scopes of a pull, in the order (seq, table, key). Reads as far as it is asked.
struct PullStream {
  struct Candidate {
    /// Index into the scopes.
    let scope: Int
    let entry: SeqLog.Entry
  }

  private struct Source {
    let scope: Int
    let name: String
    private let bucket: ByteKey?
    private let table: TableState
    private let log: SeqLog
    /// Places of entries at the cursor's holes, then everything from `next` on.
    private var holes: [Int]
    private var next: Int
    /// The first entry that still stands; nil at the end.
    private(set) var head: SeqLog.Entry?

    init(scope: Int, name: String, bucket: ByteKey?, table: TableState, log: SeqLog, cursor: CursorToken) {
      (self.scope, self.name, self.bucket, self.table, self.log) = (scope, name, bucket, table, log)
      holes = cursor.holes.flatMap { log.indices(of: $0) }
      next = log.firstIndex(after: cursor.highWater)
      advance()
    }

    mutating func advance() {
      head = nil
      while head == nil {
        let place: Int
        if holes.isEmpty {
          guard next < log.entries.count else { return }
          place = next
          next += 1
        } else {
          place = holes.removeFirst()
        }
        let entry = log.entries[place]
        if table.stands(entry, bucket: bucket) { head = entry }
      }
    }
  }

  private var sources: [Source] = []

  init(scopes: [PullScope], tables: [String: TableState], cursor: CursorToken) {
    for (index, scope) in scopes.enumerated() {
      guard let table = tables[scope.name], let log = table.logs[scope.bucket] else { continue }
      sources.append(
        Source(
          scope: index, name: scope.name, bucket: scope.bucket, table: table, log: log, cursor: cursor))
    }
  }

  mutating func next() -> Candidate? {
    var best: (source: Int, entry: SeqLog.Entry)?
    for index in sources.indices {
      guard let entry = sources[index].head else { continue }
      if let current = best, !precedes(index, entry, current) { continue }
      best = (index, entry)
    }
    guard let best else { return nil }
    sources[best.source].advance()
    return Candidate(scope: sources[best.source].scope, entry: best.entry)
  }

  private func precedes(_ source: Int, _ entry: SeqLog.Entry, _ other: (source: Int, entry: SeqLog.Entry)) -> Bool {
    if entry.seq != other.entry.seq { return entry.seq < other.entry.seq }
    let (name, otherName) = (sources[source].name, sources[other.source].name)
    return name == otherName ? entry.key < other.entry.key : JSONWriter.bytewise(name, otherName)
  }
}
