import HostKit

// pull (Kizuna wire contract §4).
extension SyncServerState {
  /// Answers one pull. The only thing it changes is the set of grants.
  public mutating func pull(_ body: JSONValue, caller: Caller) -> RPCAnswer {
    defer { endTransaction() }
    return answerPull(body, caller)
  }

  /// As `pull`, within the running transaction.
  mutating func answerPull(_ body: JSONValue, _ caller: Caller) -> RPCAnswer {
    do throws(RPCError) {
      return .success(try whole { state throws(RPCError) in try state.page(body, caller) })
    } catch {
      return .failure(error)
    }
  }

  private mutating func page(_ body: JSONValue, _ caller: Caller) throws(RPCError) -> JSONValue {
    let user = try requireUser(caller, function: "pull")
    let request = try PullRequest(body, configuration: configuration)
    if configuration.requiresReset(schemaVersion: request.schemaVersion, tables: request.buckets.map(\.table)) {
      return signal("RESET_REQUIRED", cursor: request.cursorText)
    }
    let scopes = try scopes(of: request)
    let checkpoint = request.cursor.checkpoint
    let isAhead = configuration.expiresCursorsAhead && max(checkpoint, request.cursor.highWater) > horizon
    if checkpoint > 0 && checkpoint < reapHorizon || isAhead {
      return signal("CHECKPOINT_EXPIRED", cursor: request.cursorText)
    }

    var page = PullPage(cursor: request.cursor, limit: request.limit, maximumScan: configuration.maxPullScan)
    var stream = PullStream(scopes: scopes, tables: tables, cursor: request.cursor)
    var shown: Set<Grant> = []
    while let candidate = stream.next() {
      let scope = scopes[candidate.scope]
      let entry = deliverable(candidate, in: scope, of: scopes, caller, user)
      guard page.take(seq: candidate.entry.seq, entry) else { break }
      if case .row = entry { shown.insert(grant(user, scope)) }
    }
    // Only now: a tombstone needs a grant from an earlier pull.
    for grant in shown where !grants.contains(grant) { make(.grant(grant, held: true)) }
    return page.answer(horizon: horizon)
  }

  private func signal(_ type: String, cursor: String) -> JSONValue {
    [
      "rows": [], "tombstones": [], "has_more": false, "cursor": .string(cursor),
      "signal": ["type": .string(type)],
    ]
  }

  private func grant(_ user: String, _ scope: PullScope) -> Grant {
    Grant(user: ByteKey(user), table: scope.name, bucket: scope.bucket)
  }

  /// One scope for each table and bucket value that is asked for; entries that name the same one are joined.
  private func scopes(of request: PullRequest) throws(RPCError) -> [PullScope] {
    var scopes: [PullScope] = []
    for bucket in request.buckets {
      guard let table = configuration.tables[bucket.table] else { continue }
      var filter = bucket.params
      var value: ByteKey?
      if let column = table.bucketColumn {
        guard let text = filter.removeValue(forKey: column) else {
          throw RPCError("KZL01", "table \(bucket.table) is pulled by \(column), which the params do not name")
        }
        value = ByteKey(try cast(text, column, table))
      }
      let needed = table.keyColumns + (table.bucketColumn.map { [$0] } ?? [])
      if needed.contains(where: table.unreadableColumns.contains) {
        throw RPCError("KZL02", "a key or bucket column of table \(bucket.table) cannot be read")
      }
      for (column, text) in filter { filter[column] = try cast(text, column, table) }
      if let index = scopes.firstIndex(where: { $0.name == bucket.table && $0.bucket == value }) {
        scopes[index].filters.append(filter)
      } else {
        scopes.append(PullScope(name: bucket.table, table: table, bucket: value, filters: [filter]))
      }
    }
    return scopes
  }

  private func cast(_ text: String, _ column: String, _ table: SyncTable) throws(RPCError) -> String {
    guard let type = table.columns[column] else { return text }
    do throws(ColumnType.Refusal) {
      return ColumnType.text(of: try type.cast(.string(text))) ?? text
    } catch {
      throw RPCError(error.code, "\(error.message): param \(column)")
    }
  }

  /// What the caller is given for a candidate; nil when it is withheld.
  private func deliverable(
    _ candidate: PullStream.Candidate, in scope: PullScope, of scopes: [PullScope], _ caller: Caller, _ user: String
  ) -> PullPage.Entry? {
    guard let state = tables[scope.name] else { return nil }
    let key = candidate.entry.key
    switch candidate.entry.kind {
    case .row:
      guard let row = state.rows[key], scope.admits(row), mayAccess(row.cells, of: scope.table, caller) else {
        return nil
      }
      let rendered = render(row.cells, of: scope.table)
      return .row(table: scope.name, key: key, rendered, overwritten: row.overwritten)
    case .tombstone:
      guard let tombstone = state.tombstones[TombstoneKey(key: key, bucket: scope.bucket)],
        grants.contains(grant(user, scope))
      else { return nil }
      if let row = state.rows[key], mayAccess(row.cells, of: scope.table, caller),
        scopes.contains(where: { $0.name == scope.name && $0.bucket == row.bucket && $0.admits(row) })
      {
        return nil
      }
      return .tombstone(table: scope.name, key: key, deletedAt: tombstone.deletedAt)
    }
  }
}

/// One table and bucket value of a pull, with the further params of every entry that named them.
struct PullScope {
  let name: String
  let table: SyncTable
  let bucket: ByteKey?
  /// A row must match all params of at least one entry.
  var filters: [[String: String]]

  func admits(_ row: StoredRow) -> Bool {
    filters.contains { filter in
      filter.allSatisfy { column, text in row.cells[column].flatMap(ColumnType.text) == text }
    }
  }
}
