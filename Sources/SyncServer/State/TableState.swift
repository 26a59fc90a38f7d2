/// The rows and tombstones of one table, and per bucket the order in which they changed.
struct TableState: Sendable {
  private(set) var rows: [ByteKey: StoredRow] = [:]
  private(set) var tombstones: [TombstoneKey: Tombstone] = [:]
  private(set) var logs: [ByteKey?: SeqLog] = [:]
  /// The buckets of each row's tombstones, so that a deleted row is found by its key.
  private var buried: [ByteKey: Set<ByteKey?>] = [:]

  /// Replaces or removes a row; returns what was there.
  mutating func set(_ row: StoredRow?, at key: ByteKey) -> StoredRow? {
    let old = rows[key]
    rows[key] = row
    if let old { logs[old.bucket, default: SeqLog()].remove(.init(seq: old.seq, key: key, kind: .row)) }
    if let row { logs[row.bucket, default: SeqLog()].insert(.init(seq: row.seq, key: key, kind: .row)) }
    return old
  }

  /// Replaces or removes a tombstone; returns what was there.
  mutating func set(_ tombstone: Tombstone?, at place: TombstoneKey) -> Tombstone? {
    let old = tombstones[place]
    tombstones[place] = tombstone
    if let old { logs[place.bucket, default: SeqLog()].remove(.init(seq: old.seq, key: place.key, kind: .tombstone)) }
    if let tombstone {
      logs[place.bucket, default: SeqLog()].insert(.init(seq: tombstone.seq, key: place.key, kind: .tombstone))
      buried[place.key, default: []].insert(place.bucket)
    } else {
      buried[place.key]?.remove(place.bucket)
      if buried[place.key]?.isEmpty ?? false { buried[place.key] = nil }
    }
    return old
  }

  /// Whether the log entry is still the newest change of its row or tombstone.
  func stands(_ entry: SeqLog.Entry, bucket: ByteKey?) -> Bool {
    switch entry.kind {
    case .row: rows[entry.key]?.seq == entry.seq
    case .tombstone: tombstones[TombstoneKey(key: entry.key, bucket: bucket)]?.seq == entry.seq
    }
  }

  /// The bucket of the newest tombstone of a row that is gone; nil when the row lives or was never buried.
  func burial(of key: ByteKey) -> TombstoneKey? {
    guard rows[key] == nil, let buckets = buried[key] else { return nil }
    let places = buckets.map { TombstoneKey(key: key, bucket: $0) }
    return places.max { (tombstones[$0]?.seq ?? 0) < (tombstones[$1]?.seq ?? 0) }
  }

  mutating func compact(bucket: ByteKey?) {
    guard var log = logs[bucket] else { return }
    logs[bucket] = nil
    log.compact { stands($0, bucket: bucket) }
    logs[bucket] = log
  }
}
