import Glibc
import HostKit
import KizunaSync

/// The `run` that has a database, if one does.
enum RunningGateway {
  /// Asks it for a push and pull, and waits for nothing. An app that holds the database is left alone: a signal would end
  /// it, and it sends what waits with its next run.
  /// - Returns: its process id; nil when there is none to ask.
  @discardableResult
  static func wake(database: String) -> Int32? {
    guard let holder = KizunaSyncReplicaStatus.holder(ofDatabase: database)?.processID,
      let record = RunRecordFile.read(ofDatabase: database), record.processID == holder,
      record.manner == .wokenByHangup,
      kill(holder, SIGHUP) == 0
    else { return nil }
    return holder
  }
}
