import CLinux
import Glibc
import HostKit

/// Notices that another process may have committed to a database, without polling, by what happens to the write-ahead log.
///
/// `check` is called on the watcher's thread: once at the start, then after each sign by the times of `CheckLadder`. It
/// must be short; it decides itself whether anything really changed. Own commits give signs like foreign ones.
final class ForeignCommitWatcher: Sendable {
  private let watch: Watch
  private let signs: LogSigns

  /// Starts watching; `check` may be called before this returns.
  /// - Throws: `HostFileError` when the system gives no watch.
  init(database: String, check: @escaping @Sendable () -> Void) throws(HostFileError) {
    let watch = Watch(check)
    signs = try LogSigns(DatabaseFiles(database)) { watch.sign() }
    self.watch = watch
    HostThread.detach(name: "kizuna-watch") { watch.run() }
  }

  deinit {
    signs.cancel()
    watch.stop()
  }

  /// Returns when the thread has ended; `check` is not called any more. Idempotent.
  func stop() async {
    signs.cancel()
    watch.stop()
    await watch.waitUntilEnded()
  }
}

/// The thread and its loop. Kept alive by its thread, so that the watcher's `deinit` can end it.
private final class Watch: Sendable {
  private struct State {
    var isSigned = false
    var isStopped = false
    var isEnded = false
    var whenEnded: [CheckedContinuation<Void, Never>] = []
  }

  private let check: @Sendable () -> Void
  private let state = Locked(State())
  /// An eventfd that ends the thread's sleep.
  private let bell = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))

  init(_ check: @escaping @Sendable () -> Void) {
    self.check = check
  }

  deinit {
    close(bell)
  }

  func sign() {
    state.withLock { $0.isSigned = true }
    ring()
  }

  func stop() {
    state.withLock { $0.isStopped = true }
    ring()
  }

  private func ring() {
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
    while true {
      let (isSigned, isStopped) = state.withLock { state -> (Bool, Bool) in
        defer { state.isSigned = false }
        return (state.isSigned, state.isStopped)
      }
      if isStopped { break }
      if isSigned { ladder.sign(at: SystemClock.monotonic) }
      if ladder.look(at: SystemClock.monotonic) {
        check()
      } else {
        sleep(until: ladder.due)
      }
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
    var descriptor = pollfd(fd: bell, events: Int16(POLLIN), revents: 0)
    let now = SystemClock.monotonic
    let timeout = deadline.map { $0 > now ? Int32(($0 - now + 999_999) / 1_000_000) : 0 }
    _ = poll(&descriptor, 1, timeout ?? -1)
    var count: UInt64 = 0
    _ = read(bell, &count, 8)
  }
}
