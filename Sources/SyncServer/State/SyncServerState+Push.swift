import HostKit

// push (Kizuna wire contract §5).
extension SyncServerState {
  /// Answers one push. Verdicts and their effects are recorded together.
  ///
  /// - Parameter now: milliseconds since 1970.
  public mutating func push(_ body: JSONValue, caller: Caller, now: Int64) -> RPCAnswer {
    defer { endTransaction() }
    return answerPush(body, caller, now)
  }

  /// As `push`, within the running transaction.
  mutating func answerPush(_ body: JSONValue, _ caller: Caller, _ now: Int64) -> RPCAnswer {
    do throws(RPCError) {
      return .success(try whole { state throws(RPCError) in try state.decide(body, caller, now) })
    } catch {
      return .failure(error)
    }
  }

  private mutating func decide(_ body: JSONValue, _ caller: Caller, _ now: Int64) throws(RPCError) -> JSONValue {
    let user = try requireUser(caller, function: "push")
    let request = try PushRequest(body)
    if configuration.requiresReset(schemaVersion: request.schemaVersion, tables: request.tables) {
      return ["signal": ["type": "RESET_REQUIRED"]]
    }
    let mutations = try guarded(request)

    let before = savepoint
    var session = PushSession(caller: caller, user: user, now: now)
    var verdicts: [JSONValue] = []
    verdicts.reserveCapacity(mutations.count)
    for mutation in mutations {
      let verdict = try decide(mutation, &session)
      if request.atomic, verdict.reason != nil {
        rollback(to: before)
        return verdict.abort
      }
      verdicts.append(verdict.json)
    }
    return ["verdicts": .array(verdicts)]
  }

  /// The guards that refuse a whole request, in order.
  private func guarded(_ request: PushRequest) throws(RPCError) -> [Mutation] {
    var mutations: [Mutation] = []
    mutations.reserveCapacity(request.mutations.count)
    for (index, value) in request.mutations.enumerated() {
      mutations.append(try Mutation(value, position: index + 1, configuration: configuration))
    }
    if let refused = mutations.first(where: { configuration.tables[$0.table]?.syncMode == .pullOnly }) {
      throw RPCError("KZP01", "table \(refused.table) is pull-only")
    }
    if let maximum = configuration.maxBatchSize, mutations.count > maximum {
      throw RPCError("KZP02", "a batch may carry at most \(maximum) mutations")
    }
    if configuration.requireAtomic, !request.atomic {
      throw RPCError("KZP03", "this server takes atomic batches only")
    }
    return mutations
  }

  private mutating func decide(_ mutation: Mutation, _ session: inout PushSession) throws(RPCError) -> Verdict {
    if let recorded = ledger[mutation.id] { return replay(mutation.id, recorded, session) }
    guard let table = configuration.tables[mutation.table] else {
      throw RPCError("0A000", "table \(mutation.table) is not synchronised")
    }
    let verdict: Verdict
    switch outcome(of: mutation, table, &session) {
    case .applied:
      let row = mutation.transforms.isEmpty ? nil : visibleRow(mutation.table, mutation.key, session.caller)
      verdict = .applied(mutation.id, row: row)
    case .rejected(let reason, let showsRow):
      let row = showsRow ? visibleRow(mutation.table, mutation.key, session.caller) : nil
      verdict = .rejected(mutation.id, reason, row: row)
    }
    let entry = LedgerEntry(
      reason: verdict.reason, user: session.user, table: mutation.table, key: mutation.key,
      showsRow: !mutation.transforms.isEmpty, decidedAt: session.now)
    make(.verdict(id: mutation.id, entry))
    return verdict
  }

  /// The recorded verdict, with the row as it stands now.
  private func replay(_ id: String, _ recorded: LedgerEntry, _ session: PushSession) -> Verdict {
    guard recorded.user == session.user else { return .rejected(id, .rlsDenied, row: nil) }
    let row = visibleRow(recorded.table, recorded.key, session.caller)
    guard let reason = recorded.reason else { return .applied(id, row: recorded.showsRow ? row : nil) }
    return .rejected(id, reason, row: row)
  }

  /// Applies one mutation or says why not; a refused one has changed nothing.
  private mutating func outcome(
    of mutation: Mutation, _ table: SyncTable, _ session: inout PushSession
  ) -> PushDecision {
    let place = RowPlace(table: mutation.table, key: mutation.key)
    if session.deleted.contains(place) { return .rejected(.deleteWins, showsRow: false) }
    if let burial = tables[mutation.table]?.burial(of: mutation.key) {
      let grant = Grant(user: ByteKey(session.user), table: mutation.table, bucket: burial.bucket)
      return .rejected(grants.contains(grant) ? .deleteWins : .rlsDenied, showsRow: false)
    }
    if let reason = mutation.columnViolation(in: table) { return .rejected(reason, showsRow: true) }

    let row = tables[mutation.table]?.rows[mutation.key]
    let visible = row.map { mayAccess($0.cells, of: table, session.caller) } ?? false
    switch mutation.op {
    case .insert:
      if row != nil, !visible { return .rejected(.rlsDenied, showsRow: false) }
      // The check of the new row. Whoever sees the row that stands there is shown that it still does.
      guard mayAccess(mutation.columns, of: table, session.caller) else {
        return .rejected(.rlsDenied, showsRow: true)
      }
    case .update, .delete:
      guard visible else { return .rejected(.rlsDenied, showsRow: false) }
    }
    if !holds(mutation.precondition, row, table) { return .rejected(.precondition, showsRow: true) }

    switch mutation.op {
    case .delete:
      bury(mutation.table, mutation.key, now: session.now)
      session.deleted.insert(place)
      return .applied
    case .update where mutation.columns.isEmpty && mutation.transforms.isEmpty:
      return .rejected(.rlsDenied, showsRow: true)
    case .insert, .update:
      return write(mutation, over: row, table, session)
    }
  }

  private func holds(_ precondition: [String: JSONValue], _ row: StoredRow?, _ table: SyncTable) -> Bool {
    precondition.allSatisfy { column, expected in
      guard let current = row?.cells[column], !table.unreadableColumns.contains(column) else { return false }
      return ColumnType.same(current, expected, type: table.columns[column])
    }
  }

  private mutating func write(
    _ mutation: Mutation, over old: StoredRow?, _ table: SyncTable, _ session: PushSession
  ) -> PushDecision {
    var row = old ?? newRow(table, mutation.keyParts)
    row.overwritten = []
    let stamp = mutation.hlc.map {
      $0.clamped(to: UTCTimestamp.text(milliseconds: session.now + configuration.hlcMaxSkewMilliseconds))
    }
    var losers = 0
    for (column, value) in mutation.columns {
      if let stamp {
        if let held = row.clocks[column], !(held < stamp) {
          losers += 1
          continue
        }
        row.clocks[column] = stamp
      }
      guard let cell = try? table.columns[column].map({ try $0.cast(value) }) ?? value else {
        return .rejected(.constraint, showsRow: true)
      }
      if table.conflictJournal, let lost = old?.cells[column], !lost.isNull, lost != cell,
        !table.keyColumns.contains(column)
      {
        row.overwritten.append(
          OverwrittenCell(column: column, value: lost, winner: mutation.id, mode: table.conflictMode))
      }
      row.cells[column] = cell
    }
    if losers > 0, losers == mutation.columns.count, mutation.transforms.isEmpty {
      return .rejected(.superseded, showsRow: true)
    }
    for (column, transform) in mutation.transforms {
      let cell = row.cells[column] ?? .null
      guard let value = transform.applied(to: cell, type: table.columns[column]) else {
        return .rejected(.constraint, showsRow: true)
      }
      row.cells[column] = value
    }
    // As a policy's check of the new row: a caller cannot give a row away. A verdict without a row would say that the
    // caller has lost it (Kizuna wire contract §6).
    guard mayAccess(row.cells, of: table, session.caller) else { return .rejected(.rlsDenied, showsRow: true) }
    store(row, mutation.table, table, mutation.key, now: session.now)
    return .applied
  }
}

/// What one push request carries along while its mutations are decided.
struct PushSession {
  let caller: Caller
  let user: String
  let now: Int64
  /// Rows that this very push deleted.
  var deleted: Set<RowPlace> = []
}

struct RowPlace: Hashable {
  let table: String
  let key: ByteKey
}

enum PushDecision {
  case applied
  /// - `showsRow`: whether the verdict carries the row as the caller sees it.
  case rejected(RejectionReason, showsRow: Bool)
}

extension Mutation {
  /// The column rules that need no row (Kizuna wire contract §5.4 steps 3 and 4).
  func columnViolation(in table: SyncTable) -> RejectionReason? {
    let named = Array(columns.keys) + Array(transforms.keys)
    if named.contains(where: table.unwritableColumns.contains) { return .columnDenied }
    if table.isClosed, named.contains(where: { table.columns[$0] == nil && !table.keyColumns.contains($0) }) {
      return .columnDenied
    }
    switch op {
    case .update: return named.contains(where: table.keyColumns.contains) ? .columnDenied : nil
    case .insert:
      for (column, part) in zip(table.keyColumns, keyParts) {
        guard let cell = columns[column] else { continue }
        if PrimaryKey.part(of: cell, type: table.columns[column]) != part { return .constraint }
      }
      return nil
    case .delete: return nil
    }
  }
}
