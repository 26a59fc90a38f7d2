import Glibc
import HostKit
import KizunaDoorbell
import KizunaSync

/// A sync that another process does: the running gateway is asked for a run, and the end of one that began afterwards is
/// waited for. Its result is this command's.
struct SyncBesideRun {
  private enum Event: Sendable {
    /// The holder wrote how a run ended.
    case recorded
    /// Nobody holds the database any more.
    case released
    case overdue
  }

  /// How long the holder may take to say that it takes requests: it does so when the database is open.
  private static let patienceToAsk: UInt64 = .seconds(10)
  /// How long its run may take. A server that does not answer costs it half a minute.
  private static let patienceForRun: UInt64 = .seconds(120)
  /// How long other programs' new writes may keep the queue from being empty after a run that ended well.
  private static let patienceForQueue: UInt64 = .seconds(10)

  private let configuration: GatewayConfiguration
  private let pid: Int32
  private let arguments: Arguments
  private let log: HostLog
  private let started = SystemClock.monotonic
  private let thread = SerialThread(name: "kizuna-status")
  private let events: AsyncStream<Event>
  private let notify: AsyncStream<Event>.Continuation

  init(_ configuration: GatewayConfiguration, pid: Int32, arguments: Arguments, log: HostLog) {
    self.configuration = configuration
    self.arguments = arguments
    self.pid = pid
    self.log = log
    (events, notify) = AsyncStream.makeStream(of: Event.self)
  }

  /// - Returns: nil when the holder ended first: the database is free, or another's, now.
  /// - Throws: `GatewayError`, `KizunaSyncError`, `HostFileError`.
  func run() async throws -> ExitCode? {
    let database = configuration.database
    // The holder may be making the replica just now.
    let before = try? await status()
    let watch = try RunRecordFile.watch(database: database) { [notify] in notify.yield(.recorded) }
    defer { watch.cancel() }
    KizunaSyncReplicaStatus.whenReleased(database: database) { [notify] in notify.yield(.released) }
    var timer = deadline(Self.patienceToAsk)
    defer { timer.cancel() }
    var asked = AskedRun(holder: pid)
    var isQueueLeft = false
    var waitsForRelease = false
    // The record may be there already.
    notify.yield(.recorded)

    for await event in events {
      switch event {
      case .released: return nil
      case .overdue where isQueueLeft: return report(try await status(), before)
      case .overdue where hasNewHolder: return nil
      case .overdue: throw asked.isAsked || waitsForRelease ? overdue : takesNoRequests
      case .recorded: break
      }
      // Of several that wait, another may have been quicker; then all this begins anew with that one.
      if hasNewHolder { return nil }
      switch asked.step(await record()) {
      case .wait: break
      case .waitForRelease:
        guard !waitsForRelease else { break }
        waitsForRelease = true
        log.info("sync.waits", ["pid": .int(Int(pid))])
        timer.cancel()
        timer = deadline(Self.patienceForRun)
      case .refuse: throw takesNoRequests
      case .ask:
        asked.ask(at: SystemClock.monotonic)
        guard kill(pid, SIGHUP) == 0 else {
          if errno == ESRCH { break }
          throw GatewayError(
            .locked, "process \(pid) synchronises the database and cannot be asked: \(String(cString: strerror(errno)))"
          )
        }
        log.info("sync.asked", ["pid": .int(Int(pid))])
        timer.cancel()
        timer = deadline(Self.patienceForRun)
      case .failed(let error): throw error
      case .succeeded:
        let now = try await status()
        guard now.outboxDepth > 0, now.softBlock == nil else { return report(now, before) }
        // Written while the run ended, perhaps: another one follows by itself.
        asked.ask(at: SystemClock.monotonic)
        if !isQueueLeft {
          isQueueLeft = true
          timer.cancel()
          timer = deadline(Self.patienceForQueue)
        }
      }
    }
    throw CancellationError()
  }

  private var hasNewHolder: Bool {
    // One that has only just taken it has not written its id yet; the next record tells.
    KizunaSyncReplicaStatus.holder(ofDatabase: configuration.database)?.processID.map { $0 != pid } ?? false
  }

  private func deadline(_ patience: UInt64) -> any HostTimer {
    SystemClock.shared.schedule(after: patience) { [notify] in notify.yield(.overdue) }
  }

  private var takesNoRequests: GatewayError { .takesNoRequests(pid, database: configuration.database) }

  private var overdue: GatewayError {
    GatewayError(
      .other,
      "process \(pid) synchronises the database and has not finished within \(Self.patienceForRun / 1_000_000_000) s; see its log"
    )
  }

  private func report(_ status: KizunaSyncReplicaStatus, _ before: KizunaSyncReplicaStatus?) -> ExitCode {
    SyncReport(
      outboxDepth: status.outboxDepth, rejected: max(0, status.rejections - (before?.rejections ?? 0)),
      cursor: status.cursor,
      softBlock: status.softBlock, leftovers: SyncLeftovers(status), duration: SystemClock.monotonic - started,
      by: "run"
    ).print(arguments)
  }

  // MARK: On a thread that may block

  private func record() async -> RunRecord? {
    await withCheckedContinuation { continuation in
      thread.run { [configuration] in
        continuation.resume(returning: RunRecordFile.read(ofDatabase: configuration.database))
      }
    }
  }

  private func status() async throws -> KizunaSyncReplicaStatus {
    try await withCheckedThrowingContinuation { continuation in
      thread.run { [configuration] in
        continuation.resume(with: Result { try KizunaSyncReplicaStatus.read(databasePath: configuration.database) })
      }
    }
  }
}
