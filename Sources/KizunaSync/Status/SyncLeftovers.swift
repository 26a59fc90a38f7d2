/// What is left when a sync has ended, and waits for somebody.
package struct SyncLeftovers: Sendable, Hashable {
  /// Refused writes that nobody has retried or dismissed, those of earlier syncs included.
  package var refused: Int
  /// Rows of the server that a constraint of the database refuses.
  package var parkedRows: Int
  /// Tables that cannot take rows as they are.
  package var tablesSetAside: [String]
  /// Writes, by table, of tables that are not configured.
  package var heldWrites: [String: Int]

  package init(refused: Int = 0, parkedRows: Int = 0, tablesSetAside: [String] = [], heldWrites: [String: Int] = [:]) {
    (self.refused, self.parkedRows) = (refused, parkedRows)
    (self.tablesSetAside, self.heldWrites) = (tablesSetAside, heldWrites)
  }

  package init(_ status: KizunaSyncReplicaStatus) {
    self.init(
      refused: status.rejections, parkedRows: status.parkedRows, tablesSetAside: status.tablesSetAside.keys.sorted(),
      heldWrites: status.heldWrites)
  }

  package var isEmpty: Bool { self == SyncLeftovers() }

  /// One sentence for each kind, with what to do.
  package var sentences: [String] {
    var sentences: [String] = []
    if refused > 0 {
      sentences.append("refused writes are held (\(refused)); see outbox list, then retry or discard them")
    }
    if parkedRows > 0 {
      sentences.append(
        "rows of the server are kept aside (\(parkedRows)), because this database cannot take them; see outbox list")
    }
    if !tablesSetAside.isEmpty {
      sentences.append("tables take no part (\(tablesSetAside.joined(separator: ", "))); see status for the reason")
    }
    for (table, count) in heldWrites.sorted(by: { $0.key < $1.key }) {
      sentences.append(
        "writes of \(table) wait (\(count)), which is not configured; configure it again, or reset to give them up")
    }
    return sentences
  }
}

extension KizunaSyncClient {
  /// What waits for somebody after a sync.
  package func leftovers() async throws -> SyncLeftovers { try await engine().leftovers() }
}
