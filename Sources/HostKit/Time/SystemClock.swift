import CLinux
import Glibc

/// The real clock: one thread for all timers of the process, started by the first timer and never ended.
/// It sleeps until the earliest deadline, so an idle process is not woken.
public final class SystemClock: HostClock {
  public static let shared = SystemClock()

  private struct Entry {
    let deadline: UInt64
    let work: @Sendable () -> Void
  }

  private struct State {
    var entries: [UInt64: Entry] = [:]
    var nextID: UInt64 = 0
    var started = false
  }

  private let state = Locked(State())
  /// An eventfd: written when a timer is armed that is earlier than what the thread sleeps for.
  private let wake: Int32 = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
  private let timer: Int32 = timerfd_create(CLOCK_BOOTTIME, Int32(TFD_CLOEXEC | TFD_NONBLOCK))

  private init() {}

  public var now: UInt64 { Self.time(of: CLOCK_BOOTTIME) }

  public var wallMilliseconds: Int64 { Int64(Self.time(of: CLOCK_REALTIME) / 1_000_000) }

  /// Nanoseconds of `CLOCK_MONOTONIC`, the scale on which stage times of two processes are compared.
  public static var monotonic: UInt64 { time(of: CLOCK_MONOTONIC) }

  private static func time(of clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  @discardableResult
  public func schedule(at deadline: UInt64, _ work: @escaping @Sendable () -> Void) -> any HostTimer {
    let (id, mustWake, mustStart) = state.withLock { state -> (UInt64, Bool, Bool) in
      let earliest = state.entries.values.map(\.deadline).min()
      let id = state.nextID
      state.nextID += 1
      state.entries[id] = Entry(deadline: deadline, work: work)
      let mustStart = !state.started
      state.started = true
      return (id, earliest.map { deadline < $0 } ?? true, mustStart)
    }
    if mustStart { startThread() }
    if mustWake { ring() }
    return Timer(clock: self, id: id)
  }

  private func ring() {
    var one: UInt64 = 1
    _ = write(wake, &one, 8)
  }

  private func cancel(_ id: UInt64) {
    state.withLock { _ = $0.entries.removeValue(forKey: id) }
  }

  private struct Timer: HostTimer {
    let clock: SystemClock
    let id: UInt64
    func cancel() { clock.cancel(id) }
  }

  private func startThread() {
    HostThread.detach(name: "kizuna-timer") { [self] in
      while true {
        // One at a time: what is cancelled by another timer's work, or while it runs, must not start any more.
        let (due, next) = state.withLock { state -> (Entry?, UInt64?) in
          guard let first = state.entries.min(by: { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) }) else {
            return (nil, nil)
          }
          guard first.value.deadline <= self.now else { return (nil, first.value.deadline) }
          state.entries.removeValue(forKey: first.key)
          return (first.value, nil)
        }
        if let due {
          due.work()
        } else {
          sleep(until: next)
        }
      }
    }
  }

  private func sleep(until deadline: UInt64?) {
    var spec = itimerspec()
    if let deadline {
      spec.it_value.tv_sec = Int(deadline / 1_000_000_000)
      spec.it_value.tv_nsec = Int(deadline % 1_000_000_000)
    }
    // An all-zero value disarms, which is what "no timer" means.
    timerfd_settime(timer, Int32(TFD_TIMER_ABSTIME), &spec, nil)
    var fds = [
      pollfd(fd: timer, events: Int16(POLLIN), revents: 0), pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
    ]
    _ = poll(&fds, 2, -1)
    var sink: UInt64 = 0
    _ = read(timer, &sink, 8)
    _ = read(wake, &sink, 8)
  }
}
