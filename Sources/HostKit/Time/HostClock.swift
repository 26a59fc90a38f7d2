/// The clock and timer port. Everything that waits takes one of these, so that tests decide what time it is.
///
/// `now` counts nanoseconds on a clock that goes on through suspend (`CLOCK_BOOTTIME`) and has no relation to the
/// calendar; `wallMilliseconds` is the calendar and may jump.
public protocol HostClock: AnyObject, Sendable {
  /// Nanoseconds since an arbitrary point.
  var now: UInt64 { get }
  /// Milliseconds since 1970 by the calendar.
  var wallMilliseconds: Int64 { get }
  /// Runs `work` once, at or after `deadline` (on the scale of `now`), on a thread of the clock's choosing.
  /// `work` must be short and must not block.
  @discardableResult
  func schedule(at deadline: UInt64, _ work: @escaping @Sendable () -> Void) -> any HostTimer
}

/// A timer that was armed by a `HostClock`.
public protocol HostTimer: Sendable {
  /// After this returns the work does not start any more. Idempotent; work already running goes on.
  func cancel()
}

extension HostClock {
  /// Runs `work` once after `delay` nanoseconds.
  @discardableResult
  public func schedule(after delay: UInt64, _ work: @escaping @Sendable () -> Void) -> any HostTimer {
    schedule(at: now.addingClamped(delay), work)
  }

  /// Suspends the calling task for `delay` nanoseconds; returns early, throwing, when the task is cancelled.
  public func sleep(nanoseconds delay: UInt64) async throws {
    let wait = TimerWait()
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        wait.begin(continuation) { self.schedule(after: delay) { wait.finish(.success(())) } }
      }
    } onCancel: {
      wait.finish(.failure(CancellationError()))
    }
  }
}

/// One `sleep`: whichever of timer and cancellation comes first ends it.
private final class TimerWait: Sendable {
  private struct State {
    var continuation: CheckedContinuation<Void, any Error>?
    var timer: (any HostTimer)?
    var result: Result<Void, any Error>?
  }
  private let state = Locked(State())

  func begin(_ continuation: CheckedContinuation<Void, any Error>, arm: () -> any HostTimer) {
    let early = state.withLock { state -> Result<Void, any Error>? in
      if state.result == nil { state.continuation = continuation }
      return state.result
    }
    if let early { return continuation.resume(with: early) }
    let timer = arm()
    let late = state.withLock { state -> Bool in
      state.timer = timer
      return state.result != nil
    }
    if late { timer.cancel() }
  }

  func finish(_ result: Result<Void, any Error>) {
    let (continuation, timer) = state.withLock { state -> (CheckedContinuation<Void, any Error>?, (any HostTimer)?) in
      guard state.result == nil else { return (nil, nil) }
      state.result = result
      defer { state.continuation = nil }
      return (state.continuation, state.timer)
    }
    timer?.cancel()
    continuation?.resume(with: result)
  }
}
