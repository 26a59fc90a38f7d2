import HostKit

/// When a visibility sweep is made: at an interval, and when somebody asks.
extension SyncEngine {
  private var interval: UInt64? { config.visibilitySweepInterval.map { .seconds(max(1, $0)) } }

  var isSweepDue: Bool { nextSweep.map { clock.now >= $0 } ?? false }

  /// The interval goes on across restarts. Only when to look is taken from the calendar, never what to believe: a clock
  /// that was set costs one sweep too many, or one a whole interval later.
  func planSweep() throws {
    guard let interval else { return }
    var wait = interval
    if let last = try translating({ try replica().database.meta(.sweptAt).integer }) {
      let passed = clock.wallMilliseconds - last
      wait = passed < 0 ? 0 : interval - min(interval, UInt64(passed) * 1_000_000)
    }
    nextSweep = clock.now + wait
  }

  /// After the queue was pushed, so that most changes are decided by then.
  func beginSweepIfDue() throws {
    let replica = try replica()
    guard try isSweepDue || replica.isSweepAsked() else { return }
    try replica.beginSweep()
    nextSweep = interval.map { clock.now + $0 }
  }

  /// A sync that also removes what the server does not show any more.
  func sweep() async throws {
    try translating {
      try replica().bareTransaction(sync: .normal, foreignKeys: false) {
        try replica().database.setMeta(.sweepAsked, 1)
      }
    }
    try await sync()
  }
}

extension KizunaSyncClient {
  /// Pushes and pulls as ``sync()`` does, and removes rows that the server does not show any more though nobody deleted
  /// them: those that access was withdrawn from. Everything is read again; readers never see an empty table.
  ///
  /// A row with changes that are not decided yet stays until they are. ``KizunaSyncClientConfig/visibilitySweepInterval``
  /// does the same from time to time.
  /// - Throws: as ``sync()``; what was not finished goes on with the next one.
  public func sweep() async throws {
    try await engine().sweep()
  }
}

extension KizunaSyncReplicaStatus {
  /// Asks whoever syncs the database next to make a visibility sweep, see ``KizunaSyncClient/sweep()``. Takes no lock on
  /// the database, and blocks.
  ///
  /// - Throws: `KizunaSyncError` with `STORE_UNAVAILABLE` when the file is missing or is no replica.
  public static func askForSweep(databasePath path: String) throws {
    _ = try read(databasePath: path)
    try StoreFailure.translating(path: path) {
      let database = try Database(DatabaseConfiguration(path: path, role: .visitor))
      defer { database.close() }
      try database.transaction { try database.setMeta(.sweepAsked, 1) }
    }
  }
}
