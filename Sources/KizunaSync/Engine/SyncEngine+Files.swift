import HostKit

/// What the engine does when somebody takes its files away.
extension SyncEngine {
  /// Looks whether the files are still the ones that were opened. Nothing is written any more when they are not.
  func noticeFiles() {
    guard lost == nil, let files, let replica = openReplica else { return }
    if var loss = files.loss() {
      // A file that was cut off has lost what was in it, though it may have been written since.
      if loss.part != .database, replica.database.isOverwritten { loss = .init(part: .database, manner: .emptied) }
      let unsent = (try? replica.outboxDepth()) ?? 0
      // The log beside a file that was put in place belongs to the old one: SQLite would take it for the new one's. What it
      // holds goes where it belongs. Without the shared memory nothing keeps another program out of the log.
      if loss.part != .sharedMemory, loss.manner != .emptied { replica.database.emptyLog() }
      // What is there at the next start is none that this host wrote last.
      if loss.part == .database, let path = settings.path, lock != nil {
        try? InstanceFile(path).write(RandomUUID.make())
      }
      return lose(KizunaSyncError(.store, files.sentence(loss, unsent: loss.part == .database ? unsent : 0)))
    }
    if let lock, !lock.isEffective {
      do {
        try lock.renew()
        log.warning("store.lock_taken_again", ["file": .string(lock.path)])
      } catch {
        lose(
          KizunaSyncError(.storeUnavailable, "the lock file was removed, and another process took the lock: \(error)"))
      }
    }
  }

  /// SQLite found another program's bytes in the file.
  func noticeOverwritten() {
    guard lost == nil, let files else { return }
    lose(KizunaSyncError(.store, files.sentence(.init(part: .database, manner: .emptied), unsent: 0)))
  }

  private func lose(_ error: KizunaSyncError) {
    log.error("store.file_lost", ["reason": .string(error.message)])
    lost = error
    openReplica?.lost = error
    inFlight?.cancel()
    onLoss(error)
  }
}
