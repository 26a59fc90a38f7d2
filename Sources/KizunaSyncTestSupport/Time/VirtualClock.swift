import HostKit

/// A clock that stands still until a test moves it.
///
/// `advance(by:)` runs the timers that fall due, one deadline after the other and each at its own time, and lets the
/// jobs they cause come to rest before time goes on. Nothing sleeps.
///
/// Rest is found by looking, because Swift does not say when all tasks are idle: every enrolled thread has emptied its
/// queue, no timer was armed or cancelled meanwhile, and no thread of the process is running (`Quiescence`). A test
/// whose subject works outside of this process's threads waits for its event with ``settle(patience:until:)`` instead.
public final class VirtualClock: HostClock {
  private struct Entry {
    let id: UInt64
    let deadline: UInt64
    let work: @Sendable () -> Void
  }

  private struct State {
    var now: UInt64
    var wallMilliseconds: Int64
    var wallRemainder: UInt64 = 0
    var entries: [Entry] = []
    var nextID: UInt64 = 0
    /// Counts arms, cancels and firings; unchanged over a look around means that nothing moves.
    var activity: UInt64 = 0
    var threads: [SerialThread] = []
  }

  private let state: Locked<State>

  /// - Parameters:
  ///   - now: nanoseconds at which the clock starts.
  ///   - wallMilliseconds: the calendar at that moment.
  public init(now: UInt64 = .seconds(1_000), wallMilliseconds: Int64 = 1_767_225_600_000) {
    state = Locked(State(now: now, wallMilliseconds: wallMilliseconds))
  }

  public var now: UInt64 { state.withLock { $0.now } }
  public var wallMilliseconds: Int64 { state.withLock { $0.wallMilliseconds } }

  /// Deadlines of the timers that are armed, earliest first.
  public var pendingDeadlines: [UInt64] { state.withLock { $0.entries.map(\.deadline).sorted() } }

  /// Fires with the next `advance` or `settle` when `deadline` has passed already.
  @discardableResult
  public func schedule(at deadline: UInt64, _ work: @escaping @Sendable () -> Void) -> any HostTimer {
    let id = state.withLock { state -> UInt64 in
      state.nextID += 1
      state.activity += 1
      state.entries.append(Entry(id: state.nextID, deadline: deadline, work: work))
      return state.nextID
    }
    return Timer(clock: self, id: id)
  }

  private struct Timer: HostTimer {
    let clock: VirtualClock
    let id: UInt64
    func cancel() {
      clock.state.withLock { state in
        state.activity += 1
        state.entries.removeAll { $0.id == id }
      }
    }
  }

  /// Makes `settle` wait for the queue of this thread as well.
  public func enroll(_ thread: SerialThread) {
    state.withLock { $0.threads.append(thread) }
  }

  // MARK: Moving time

  /// Lets `duration` nanoseconds pass.
  public func advance(by duration: UInt64) async {
    await advance(to: now + duration)
  }

  /// Lets time pass until `target`; at once when that lies in the past.
  public func advance(to target: UInt64) async {
    await settle()
    while let next = state.withLock({ state in state.entries.map(\.deadline).filter { $0 <= target }.min() }) {
      move(to: next)
      await settle()
    }
    move(to: target)
    await settle()
  }

  /// Lets time pass until `condition` holds, from timer to timer.
  /// - Parameter limit: virtual nanoseconds to wait at most.
  /// - Returns: whether the condition holds.
  @discardableResult
  public func advance(atMost limit: UInt64, until condition: () async -> Bool) async -> Bool {
    let end = now + limit
    await settle()
    while await !condition() {
      guard let next = pendingDeadlines.first, next <= end else {
        move(to: end)
        await settle()
        return await condition()
      }
      move(to: next)
      await settle()
    }
    return true
  }

  /// The host was suspended: `duration` passes on both clocks, and whatever fell due in between fires only now, late.
  public func suspendHost(for duration: UInt64) async {
    await settle()
    move(to: now + duration)
    await settle()
  }

  /// Somebody set the calendar: only `wallMilliseconds` moves.
  public func jumpWall(byMilliseconds difference: Int64) {
    state.withLock { $0.wallMilliseconds += difference }
  }

  private func move(to target: UInt64) {
    state.withLock { state in
      guard target > state.now else { return }
      let passed = target - state.now + state.wallRemainder
      state.wallMilliseconds += Int64(passed / 1_000_000)
      state.wallRemainder = passed % 1_000_000
      state.now = target
    }
  }

  // MARK: Coming to rest

  /// Fires what is due and returns once the jobs this causes have come to rest.
  public func settle() async {
    var quiet = 0
    while quiet < 2 {
      let before = state.withLock { $0.activity }
      fireDue()
      await Quiescence.wait(threads: state.withLock { $0.threads })
      quiet = before == state.withLock { $0.activity } ? quiet + 1 : 0
    }
  }

  /// Settles until `condition` holds, for work that real threads or other processes do.
  /// - Parameter patience: seconds of real time after which it gives up.
  /// - Returns: whether the condition holds.
  @discardableResult
  public func settle(patience: Double = 10, until condition: () async -> Bool) async -> Bool {
    let end = SystemClock.monotonic + .seconds(patience)
    while await !condition() {
      if SystemClock.monotonic > end { return false }
      await settle()
      await Quiescence.pause()
    }
    return true
  }

  private func fireDue() {
    while let work = state.withLock({ state -> (@Sendable () -> Void)? in
      let due = state.entries.indices.filter { state.entries[$0].deadline <= state.now }
      let first = due.min {
        (state.entries[$0].deadline, state.entries[$0].id) < (state.entries[$1].deadline, state.entries[$1].id)
      }
      guard let first else { return nil }
      state.activity += 1
      return state.entries.remove(at: first).work
    }) { work() }
  }
}
