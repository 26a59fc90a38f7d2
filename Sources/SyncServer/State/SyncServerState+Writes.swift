import HostKit

/// A write past every access rule, as another device or the database console makes it.
public enum SyncWrite: Sendable, Hashable {
  /// Merges the columns into the row. On tables that resolve by origin clock, `hlc` stamps every column written.
  case upsert(table: String, pk: String, columns: [String: JSONValue], hlc: String? = nil)
  /// Deletes the row; nothing happens when it is absent.
  case delete(table: String, pk: String)
}

// Changes of rows, whoever makes them.
extension SyncServerState {
  /// Makes the writes as one transaction: all of them, or none when it throws.
  ///
  /// - Parameter now: milliseconds since 1970.
  /// - Throws: `42P01` for a table that is not configured, `22023` for a key that is not canonical, class 22 for a value
  ///   its column refuses.
  public mutating func apply(_ writes: [SyncWrite], now: Int64) throws(RPCError) {
    defer { endTransaction() }
    try perform(writes, now: now)
  }

  /// As `apply`, within the running transaction.
  mutating func perform(_ writes: [SyncWrite], now: Int64) throws(RPCError) {
    try whole { state throws(RPCError) in
      for write in writes {
        switch write {
        case .upsert(let table, let pk, let columns, let hlc): try state.upsert(table, pk, columns, hlc, now)
        case .delete(let table, let pk):
          _ = try state.locate(table, pk)
          state.bury(table, ByteKey(pk), now: now)
        }
      }
    }
  }

  private mutating func upsert(
    _ name: String, _ pk: String, _ columns: [String: JSONValue], _ hlc: String?, _ now: Int64
  ) throws(RPCError) {
    let (table, parts) = try locate(name, pk)
    let key = ByteKey(pk)
    var row = tables[name]?.rows[key] ?? newRow(table, parts)
    row.overwritten = []
    for (column, value) in columns {
      do throws(ColumnType.Refusal) {
        if let type = table.columns[column] {
          row.cells[column] = try type.cast(value)
        } else {
          row.cells[column] = value
        }
      } catch {
        throw RPCError(error.code, "\(error.message): column \(column)")
      }
    }
    if let hlc {
      guard let stamp = HLCStamp(hlc) else { throw RPCError("22023", "hlc is not a clock reading") }
      for column in columns.keys { row.clocks[column] = stamp }
    }
    store(row, name, table, key, now: now)
  }

  /// Forgets tombstones and raises the reap horizon to the newest of them; checkpoints below it are then expired.
  ///
  /// - Parameter now: reaps what is older than its time to live at this moment; nil reaps every tombstone.
  public mutating func reap(now: Int64?) {
    defer { endTransaction() }
    dropTombstones(now: now)
  }

  /// As `reap`, within the running transaction.
  mutating func dropTombstones(now: Int64?) {
    var highest = reapHorizon
    for (name, state) in tables {
      let days = configuration.tables[name]?.tombstoneTTLDays ?? configuration.tombstoneTTLDays
      for (place, tombstone) in state.tombstones {
        if let now, tombstone.deletedAt > now - Int64(days) * 86_400_000 { continue }
        highest = max(highest, tombstone.seq)
        make(.tombstone(table: name, place, nil))
      }
    }
    if highest > reapHorizon { make(.reapHorizon(highest)) }
  }

  /// Reaps old tombstones and forgets verdicts older than the clients' time to live, as a nightly job does.
  public mutating func maintain(now: Int64) {
    defer { endTransaction() }
    dropTombstones(now: now)
    pruneLedger(now: now)
  }

  /// As part of the running transaction.
  mutating func pruneLedger(now: Int64) {
    let oldest = now - Int64(configuration.clientTTLDays) * 86_400_000
    for (id, entry) in ledger where entry.decidedAt < oldest { make(.verdict(id: id, nil)) }
  }

  private func locate(_ name: String, _ pk: String) throws(RPCError) -> (SyncTable, [String]) {
    guard let table = configuration.tables[name] else { throw RPCError("42P01", "table \(name) is not synchronised") }
    guard let parts = PrimaryKey.parts(of: pk, columns: table.keyColumns, types: table.columns) else {
      throw RPCError("22023", "the key is not canonical for table \(name)")
    }
    return (table, parts)
  }

  /// A row of this key before any column is written.
  func newRow(_ table: SyncTable, _ parts: [String]) -> StoredRow {
    var cells: [String: JSONValue] = [:]
    if table.isClosed { for column in table.columns.keys { cells[column] = .null } }
    if table.includesKeyColumns || table.isClosed {
      for (column, part) in zip(table.keyColumns, parts) {
        cells[column] = PrimaryKey.cell(of: part, type: table.columns[column])
      }
    }
    return StoredRow(cells: cells, seq: 0, bucket: nil)
  }

  /// Gives the row its new image, with a tombstone in the bucket it leaves. An unchanged image writes no seq.
  mutating func store(_ row: StoredRow, _ name: String, _ table: SyncTable, _ key: ByteKey, now: Int64) {
    var row = row
    let old = tables[name]?.rows[key]
    if let old, old.cells == row.cells {
      guard old.clocks != row.clocks else { return }
      (row.seq, row.bucket, row.overwritten) = (old.seq, old.bucket, old.overwritten)
      make(.row(table: name, key: key, row))
      return
    }
    row.bucket = table.bucketColumn.flatMap { row.cells[$0].flatMap(ColumnType.text) }.map { ByteKey($0) }
    if let old, old.bucket != row.bucket {
      let place = TombstoneKey(key: key, bucket: old.bucket)
      make(.tombstone(table: name, place, Tombstone(seq: drawSeq(), deletedAt: now)))
    }
    row.seq = drawSeq()
    make(.row(table: name, key: key, row))
  }

  /// Removes a row and leaves a tombstone in its bucket.
  mutating func bury(_ name: String, _ key: ByteKey, now: Int64) {
    guard let row = tables[name]?.rows[key] else { return }
    make(.row(table: name, key: key, nil))
    let place = TombstoneKey(key: key, bucket: row.bucket)
    make(.tombstone(table: name, place, Tombstone(seq: drawSeq(), deletedAt: now)))
  }
}
