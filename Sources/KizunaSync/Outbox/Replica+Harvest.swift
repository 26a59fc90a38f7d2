import Glibc
import HostKit

extension Replica {
  /// Journal rows a transaction of its own takes at most, so that the write lock is never held for long.
  static let harvestBatch = 500
  /// Between two of them, in microseconds: who waits for the lock looks for it again and again, at first every few
  /// milliseconds, and finds it free only if it stays so.
  private static let harvestPause: UInt32 = 10_000

  /// Whether any process left journal rows that are not in the outbox yet and may go there.
  func isHarvestPending() throws -> Bool {
    try pendingJournalRows() > 0 && !isOwnerAwaited()
  }

  /// Changes by plain SQL wait in the journal until somebody has signed in, where rows get an owner: without one the server
  /// refuses them.
  func isOwnerAwaited() throws -> Bool {
    if try !database.meta(.adopting).isNull { return true }
    guard !isSignedIn, hasOwnedTables else { return false }
    return try database.meta(.owner).isNull
  }

  private var hasOwnedTables: Bool {
    settings.tables.values.contains { config in
      if case .byOwner = config.bucket { config.syncMode == .readWrite } else { false }
    }
  }

  /// The distance between the newest journal row and the harvest: an upper limit of the rows that wait, but for those
  /// that were held.
  func pendingJournalRows() throws -> Int64 {
    let newest = try database.value("SELECT max(seq) FROM _kizunasync_capture")?.integer ?? 0
    let harvested = try database.meta(.harvested).integer ?? 0
    guard try isJournalIntact(harvested) else { return 1 }
    return try newest > harvested ? newest - harvested : isHeldDue() ? 1 : 0
  }

  /// The harvest leaves the newest row it took, and nothing before it.
  private func isJournalIntact(_ harvested: Int64) throws -> Bool {
    guard harvested > 0 else { return true }
    return try oldestInJournal() == harvested
  }

  private func oldestInJournal() throws -> Int64? {
    try database.value("SELECT min(seq) FROM _kizunasync_capture WHERE seq >= 0")?.integer
  }

  /// Another program deleted rows of the journal, and their numbers were given to new ones: those are numbered again, so
  /// that the harvest finds them, and what was deleted is found by reading the tables again.
  func repairJournal() throws {
    let harvested = try database.meta(.harvested).integer ?? 0
    guard try !isJournalIntact(harvested) else { return }
    if let oldest = try oldestInJournal(), oldest <= harvested {
      // By way of numbers that nobody has, because each one is checked as it changes.
      try database.run("UPDATE _kizunasync_capture SET seq = -seq - 1 WHERE seq >= 0")
      try database.run(
        "UPDATE _kizunasync_capture SET seq = ? - seq WHERE seq < 0 AND seq > ?", .integer(harvested - oldest),
        .integer(-Self.heldOffset / 2))
    }
    try database.run("INSERT OR IGNORE INTO _kizunasync_capture(seq, tbl, op) VALUES (?, '', 'd')", .integer(harvested))
    try changeRereads { rereads in
      for (table, config) in settings.tables {
        rereads.ask(table, keep: config.syncMode == .readWrite ? .changes : .nothing)
      }
    }
    log.warning(
      "store.journal_deleted",
      [
        "reason":
          "another program deleted rows of _kizunasync_capture; all rows are read again from the server, and what differs is queued"
      ])
  }

  /// Brings the journal down to what one transaction may take, several short ones if need be.
  func harvestBacklog() throws {
    while try pendingJournalRows() > Self.harvestBatch, try isHarvestPending() {
      try bareTransaction(sync: .normal, foreignKeys: false) {
        var harvest = Harvest(self, pending: nil)
        try harvest.run(limit: Self.harvestBatch)
      }
      usleep(Self.harvestPause)
    }
  }

  /// T0 alone.
  /// - Returns: whether there was anything to harvest.
  @discardableResult
  func harvestNow() throws -> Bool {
    guard try isHarvestPending() else { return false }
    try transaction {}
    return true
  }

  /// T0 inside the current transaction.
  func harvest(attaching pending: PendingWrite? = nil) throws {
    if pending == nil { try removeStrayGroups() }
    guard try pending != nil || isHarvestPending() else { return }
    var harvest = Harvest(self, pending: pending)
    try harvest.run()
  }

  /// A group row that is ever visible committed is its writer's mistake: it would tie everybody's later writes together.
  private func removeStrayGroups() throws {
    guard try database.exists("SELECT 1 FROM _kizunasync_group LIMIT 1") else { return }
    try database.run("DELETE FROM _kizunasync_group")
    log.warning("store.group_left_open")
  }
}
