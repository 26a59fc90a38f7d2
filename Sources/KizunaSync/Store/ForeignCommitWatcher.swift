import CLinux
import Glibc
import HostKit

/// Notices that another process may have committed to a database, without polling: it watches the write-ahead log, and
/// the folder because the log may not exist yet or be made anew.
///
/// `check` is called on the watcher's thread: once at the start, then after each sign by the times of `CheckLadder`. It
/// must be short; it decides itself whether anything really changed. Own commits give signs like foreign ones.
final class ForeignCommitWatcher: Sendable {
  private let watch: Watch

  /// Starts watching; `check` may be called before this returns.
  /// - Throws: `ForeignCommitWatcherError` when the system gives no watch.
  init(database: String, check: @escaping @Sendable () -> Void) throws(ForeignCommitWatcherError) {
    watch = try Watch(DatabaseFiles(database), check: check)
    let watch = watch
    HostThread.detach(name: "kizuna-watch") { watch.run() }
  }

  deinit { watch.stop() }

  /// Returns when the thread has ended; `check` is not called any more. Idempotent.
  func stop() async {
    watch.stop()
    await watch.waitUntilEnded()
  }
}

/// The thread's loop. Kept alive by its thread, so that the watcher's `deinit` can end it.
private final class Watch: Sendable {
  private struct State {
    var isStopped = false
    var isEnded = false
    var whenEnded: [CheckedContinuation<Void, Never>] = []
  }

  private let check: @Sendable () -> Void
  private let state = Locked(State())
  private let notifications: LogNotifications
  /// An eventfd that ends the thread's sleep.
  private let bell: Int32

  init(_ files: DatabaseFiles, check: @escaping @Sendable () -> Void) throws(ForeignCommitWatcherError) {
    self.check = check
    notifications = try LogNotifications(files)
    bell = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
  }

  deinit {
    close(bell)
  }

  func stop() {
    state.withLock { $0.isStopped = true }
    var one: UInt64 = 1
    _ = write(bell, &one, 8)
  }

  func waitUntilEnded() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state -> Bool in
        if !state.isEnded { state.whenEnded.append(continuation) }
        return state.isEnded
      }
      if isOver { continuation.resume() }
    }
  }

  // MARK: On the thread

  func run() {
    var ladder = CheckLadder()
    ladder.sign(at: SystemClock.monotonic)
    while !state.withLock({ $0.isStopped }) {
      if ladder.look(at: SystemClock.monotonic) { check() }
      sleep(until: ladder.due)
      if notifications.take() { ladder.sign(at: SystemClock.monotonic) }
    }
    let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      state.isEnded = true
      defer { state.whenEnded = [] }
      return state.whenEnded
    }
    for continuation in waiting { continuation.resume() }
  }

  /// `poll` counts in milliseconds; waking a little late is better than looking twice.
  private func sleep(until deadline: UInt64?) {
    var descriptors = [
      pollfd(fd: notifications.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: bell, events: Int16(POLLIN), revents: 0),
    ]
    let now = SystemClock.monotonic
    let timeout = deadline.map { $0 > now ? Int32(($0 - now + 999_999) / 1_000_000) : 0 }
    _ = poll(&descriptors, 2, timeout ?? -1)
  }
}
