import HostKit

/// Another process wrote between the harvest and the lock.
private struct JournalGrew: Error {}

/// Writes through the library. They go through the same triggers as plain SQL, so that what an app's own triggers and
/// cascades do is captured too; id, transforms and precondition are then attached to the journal row they left.
extension Replica {
  /// Runs `body`, which may call `apply` any number of times, as one durable transaction.
  ///
  /// Foreign keys are enforced here, as the tables declare them. They are off in every other gateway transaction, and the
  /// harvest may put rows back, so what waits in the journal is harvested before, in a transaction of its own.
  func localTransaction<Result>(_ body: () throws -> Result) throws -> Result {
    while true {
      try harvestNow()
      do {
        return try bareTransaction(sync: .full, foreignKeys: true, isRepeatable: false) {
          if try isHarvestPending() { throw JournalGrew() }
          return try body()
        }
      } catch is JournalGrew {
        continue
      }
    }
  }

  /// Checks and performs one write inside `localTransaction`.
  /// - Returns: the key text of the row.
  /// - Throws: the codes of the Kizuna wire contract §13.3; nothing of the write is left then.
  func apply(_ write: LocalWrite) throws -> String {
    var write = write
    let layout = try layout(write.table)
    try refuseForbidden(write, layout.config)
    fillOwner(&write, layout)
    let pk = try settleKey(&write, layout)
    if write.op != .delete, let reason = layout.reasonAgainst(layout.keyCells(pk)) {
      throw KizunaSyncError(.localConstraint, "\(write.table) cannot hold the row: \(reason)")
    }
    do {
      return try database.savepoint { try perform(write, pk: pk) }
    } catch {
      if database.isInTransaction { try reloadLayouts() }
      if let error = error as? SQLiteError, error.isConstraint {
        throw StoreFailure.describe(error, path: settings.path)
      }
      throw error
    }
  }

  private func refuseForbidden(_ write: LocalWrite, _ config: KizunaSyncTableConfig) throws {
    if config.syncMode == .pullOnly {
      throw KizunaSyncError(.localUnsupported, "the table \(write.table) is pull-only; its rows come from the server")
    }
    if write.op == .delete, let column = config.softDeleteColumn {
      throw KizunaSyncError(
        .softDeleteViolation,
        "rows of \(write.table) are never deleted; set \(column) to the time of the deletion instead")
    }
    let transforms = write.transforms ?? [:]
    switch write.op {
    case .insert where !transforms.isEmpty:
      throw KizunaSyncError(.localUnsupported, "an insert cannot carry transforms; insert the value itself")
    case .update where write.columns.isEmpty && transforms.isEmpty:
      throw KizunaSyncError(.localConstraint, "an update of \(write.table) names no column")
    case .delete where !write.columns.isEmpty || !transforms.isEmpty:
      throw KizunaSyncError(.localUnsupported, "a delete cannot carry columns")
    default: break
    }
    if let both = transforms.keys.first(where: { write.columns[$0] != nil }) {
      throw KizunaSyncError(.localConstraint, "\(both) is both set and transformed by one update")
    }
  }

  private func fillOwner(_ write: inout LocalWrite, _ layout: TableLayout) {
    guard write.op == .insert, let column = layout.ownerColumn, write.columns[column] == nil,
      let owner = try? database.meta(.owner).text
    else { return }
    write.columns[column] = .string(owner)
  }

  /// The key text the write is about, with the key columns of an insert in their canonical spelling.
  private func settleKey(_ write: inout LocalWrite, _ layout: TableLayout) throws -> String {
    let key = layout.config.key
    if write.op == .update {
      if let column = key.first(where: { write.columns[$0] != nil || write.transforms?[$0] != nil }) {
        throw KizunaSyncError(.localConstraint, "\(column) is part of the key of \(write.table) and cannot be updated")
      }
    }
    let given = try write.pk.map { pk in
      guard let parts = layout.parts(of: pk) else {
        throw KizunaSyncError(
          .localConstraint, "the key given is not a key of \(write.table) (\(key.joined(separator: ", ")))")
      }
      return parts
    }
    if write.op == .insert {
      if key == ["id"], write.columns["id"] == nil { return given.map(RowKey.spell) ?? RandomUUID.make() }
      let parts = try zip(key, layout.keyPositions).map { column, position in
        guard let part = RowKey.part(write.columns[column]), key.count > 1 || !part.isEmpty else {
          throw KizunaSyncError(
            .localConstraint, "an insert into \(write.table) needs a text or an integer in its key column \(column)")
        }
        return layout.canonical(part, at: position)
      }
      if let given, given != parts {
        throw KizunaSyncError(
          .localConstraint, "the key columns of the insert into \(write.table) do not spell the key given")
      }
      for (column, part) in zip(key, parts) where write.columns[column]?.stringValue != nil {
        write.columns[column] = .string(part)
      }
      return RowKey.spell(parts)
    }
    guard let given else {
      throw KizunaSyncError(.localConstraint, "the \(write.op.rawValue) names no row of \(write.table)")
    }
    return RowKey.spell(given)
  }

  private func perform(_ write: LocalWrite, pk: String) throws -> String {
    let table = write.table
    if let id = write.mutationID,
      try database.exists("SELECT 1 FROM _kizunasync_outbox WHERE mutation_id = ?", .text(id.lowercased()))
    {
      throw KizunaSyncError(.localConstraint, "a write with this mutation id is queued already")
    }
    let transforms = try (write.transforms ?? [:]).mapValues(column: Transform.init)
    let written = Set(write.columns.keys).union(transforms.keys)
    try ensure(written, of: table)
    try refuseUnknownColumns(written, of: table)
    try learn(write.columns, table: table, firm: false)
    let current = try row(table, pk: pk)
    if write.op == .insert, current != nil {
      throw KizunaSyncError(.localConstraint, "\(table) has a row with this key already")
    }
    var target = write.columns
    for (column, transform) in transforms {
      target[column] = try transform.applied(to: current?[column], column: column)
    }
    try learn(target, table: table, firm: false)
    let layout = try layout(table)
    target = target.filter { !layout.isKey($0.key) }
    if let group = write.group { try database.run("INSERT INTO _kizunasync_group VALUES (?)", .text(group)) }
    switch write.op {
    case .delete:
      try database.run(layout.deleteRow, layout.keyCells(pk))
    case .insert, .update:
      if current != nil {
        try updateCells(layout, pk: pk, target)
      } else if try write.op == .insert || image(table, pk: pk) == nil {
        // An update shows a row only where nothing is known of it.
        try insertCells(layout, pk: pk, target)
      }
    }
    if write.group != nil { try database.run("DELETE FROM _kizunasync_group") }
    var pending = PendingWrite(
      write: write, pk: pk, columns: write.columns.filter { !settings.localOnlyColumns.contains($0.key) })
    pending.write.transforms = transforms.isEmpty ? nil : transforms.mapValues(\.wire)
    pending.write.mutationID = write.mutationID?.lowercased()
    try harvest(attaching: pending)
    return pk
  }

  private func refuseUnknownColumns(_ names: Set<String>, of table: String) throws {
    let layout = try layout(table)
    if let unknown = names.filter({ layout.positions[$0] == nil }).min() {
      throw KizunaSyncError(.localConstraint, "the table \(table) has no column \(unknown)")
    }
  }

  private func updateCells(_ layout: TableLayout, pk: String, _ row: RowMap) throws {
    guard !row.isEmpty else { return }
    let columns = row.sorted { JSONWriter.bytewise($0.key, $1.key) }
    let assignments = columns.map { "\(SQL.name($0.key)) = ?" }.joined(separator: ", ")
    let cells = columns.map { CellCodec.encode($0.value, kind: layout[$0.key]?.kind) }
    try database.run(
      "UPDATE \(layout.quoted) SET \(assignments) WHERE \(layout.whereKey)", cells + layout.keyCells(pk))
  }

  private func insertCells(_ layout: TableLayout, pk: String, _ row: RowMap) throws {
    let columns = row.sorted { JSONWriter.bytewise($0.key, $1.key) }
    let names = layout.config.key + columns.map(\.key)
    let cells = columns.map { CellCodec.encode($0.value, kind: layout[$0.key]?.kind) }
    try database.run(
      "INSERT INTO \(layout.quoted)(\(SQL.names(names))) VALUES (\(SQL.parameters(names.count)))",
      layout.keyCells(pk) + cells)
  }
}

extension Dictionary where Key == String {
  fileprivate func mapValues<Result>(column transform: (Value, String) throws -> Result) rethrows -> [String: Result] {
    var result: [String: Result] = [:]
    for (key, value) in self { result[key] = try transform(value, key) }
    return result
  }
}
