import HostKit

// What a caller may see and write: the stand-in for row-level security and column privileges.
extension SyncServerState {
  func mayAccess(_ cells: [String: JSONValue], of table: SyncTable, _ caller: Caller) -> Bool {
    switch table.policy {
    case .everyone: return caller.subject != nil
    case .owner(let column):
      guard let subject = caller.subject, let owner = cells[column].flatMap(ColumnType.text) else { return false }
      return owner == subject
    }
  }

  /// The row as the caller reads it.
  func render(_ cells: [String: JSONValue], of table: SyncTable) -> JSONValue {
    guard !table.unreadableColumns.isEmpty else { return .object(cells) }
    return .object(cells.filter { !table.unreadableColumns.contains($0.key) })
  }

  /// The row as it stands now, as the caller reads it; nil when absent or hidden, which must look the same.
  func visibleRow(_ name: String, _ key: ByteKey, _ caller: Caller) -> JSONValue? {
    guard let table = configuration.tables[name], let row = tables[name]?.rows[key],
      mayAccess(row.cells, of: table, caller)
    else { return nil }
    return render(row.cells, of: table)
  }

  func requireUser(_ caller: Caller, function: String) throws(RPCError) -> String {
    guard caller.role == "authenticated", let subject = caller.subject else {
      throw RPCError(
        "42501", "permission denied for function \(function)", status: caller.role == "anon" ? 401 : 403)
    }
    return subject
  }
}
