import HostKit
import KizunaSync

/// Writes how runs ended and how the doorbell stands beside the database, for `status` and for those who asked for a run.
/// On a thread of its own, because files block.
///
/// A file that cannot be written is reported once; synchronising goes on without it.
final class RunRecorder: Sendable {
  private let database: String
  private let clock: any HostClock
  private let log: HostLog
  private let thread = SerialThread(name: "kizuna-record")
  /// Touched on `thread` only.
  private let file = Locked<RunRecordFile?>(nil)
  private let isReported = Locked(false)

  init(database: String, clock: any HostClock, log: HostLog) {
    self.database = database
    self.clock = clock
    self.log = log
  }

  /// Call it once the database's lock is held.
  func begin(_ manner: RunRecord.Manner) {
    thread.run { [self] in
      do throws(HostFileError) {
        let opened = try RunRecordFile(database: database, manner: manner)
        file.withLock { $0 = opened }
      } catch { report(error) }
    }
  }

  /// A run ended well.
  /// - Parameters:
  ///   - startedAt: `CLOCK_MONOTONIC`.
  ///   - isBlocked: it did nothing, because the replica is blocked.
  func succeeded(startedAt: UInt64, isBlocked: Bool) {
    note(startedAt: startedAt, nil, succeededAt: isBlocked ? nil : clock.wallMilliseconds)
  }

  /// A run failed, or could not even begin.
  func failed(startedAt: UInt64, _ error: GatewayError, code: String?) {
    note(
      startedAt: startedAt,
      RunRecord.Failure(
        kind: error.kind.rawValue, code: code ?? error.code.rawValue, message: error.message,
        at: clock.wallMilliseconds))
  }

  /// The doorbell stands otherwise than before.
  func doorbell(_ state: String, reason: String?) {
    let doorbell = RunRecord.Doorbell(state: state, reason: reason, since: clock.wallMilliseconds)
    write { file throws(HostFileError) in try file.note(doorbell) }
  }

  private func note(startedAt: UInt64, _ failure: RunRecord.Failure?, succeededAt: Int64? = nil) {
    write { file throws(HostFileError) in
      try file.note(startedAt: startedAt, failure: failure, succeededAt: succeededAt)
    }
  }

  private func write(_ body: @escaping @Sendable (RunRecordFile) throws(HostFileError) -> Void) {
    thread.run { [self] in
      guard let file = file.withLock({ $0 }) else { return }
      do throws(HostFileError) { try body(file) } catch { report(error) }
    }
  }

  private func report(_ error: HostFileError) {
    let isFirst = isReported.withLock { isReported in
      defer { isReported = true }
      return !isReported
    }
    if isFirst { log.warning("gateway.record_not_written", ["reason": .string(error.description)]) }
  }

  /// Returns when everything is written and the file is closed.
  func end() async {
    thread.run { [self] in file.withLock { $0 = nil } }
    await thread.stopAndWait()
  }
}
