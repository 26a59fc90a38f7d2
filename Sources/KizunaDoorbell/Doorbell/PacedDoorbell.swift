import HTTPClient
import HostKit
import KizunaSync

/// A doorbell whose rings wait while the server asks for patience (``RingHold``); those that wait become one.
final class PacedDoorbell: KizunaSyncRealtimeWakeup, Sendable {
  private struct State {
    var hold = RingHold()
    var timer: (any HostTimer)?
    var onWake: (@Sendable () -> Void)?
    /// Which subscription `onWake` is of.
    var number: UInt64 = 0
  }

  private let inner: any KizunaSyncRealtimeWakeup & Sendable
  private let clock: any HostClock
  private let state = Locked(State())

  init(_ inner: any KizunaSyncRealtimeWakeup & Sendable, clock: any HostClock) {
    self.inner = inner
    self.clock = clock
  }

  /// One subscription at a time.
  func subscribe(topics: [String], onWake: @escaping @Sendable () -> Void) -> KizunaSyncRealtimeSubscription {
    let number = state.withLock { state -> UInt64 in
      state.number += 1
      state.onWake = onWake
      return state.number
    }
    let subscription = inner.subscribe(topics: topics) { [weak self] in self?.rang(number) }
    return Subscription(inner: subscription) { [weak self] in self?.end(number) }
  }

  private func rang(_ number: UInt64) {
    let now = clock.now
    let verdict = state.withLock { $0.number == number ? $0.hold.rang(at: now) : .drop }
    switch verdict {
    case .ring: wake()
    case .wait(let until): arm(until)
    case .drop: break
    }
  }

  /// The server answered a call of `pull` or `push`.
  func answered(_ function: String, _ response: HTTPResponse) {
    let now = clock.now
    let wall = response.serverDate ?? clock.wallMilliseconds
    let retryAfter = response.header("retry-after").flatMap { RetryAfter.seconds($0, now: wall) }
    let isDue = state.withLock { state -> Bool in
      state.hold.answered(
        status: response.status, endsRun: function.hasSuffix("pull"), retryAfter: retryAfter, at: now)
      return state.hold.due(at: now)
    }
    if isDue { wake() }
  }

  private func arm(_ until: UInt64) {
    let timer = clock.schedule(at: until) { [weak self] in self?.timerFired() }
    let old = state.withLock { state -> (any HostTimer)? in
      defer { state.timer = timer }
      return state.timer
    }
    old?.cancel()
  }

  private func timerFired() {
    let now = clock.now
    let (isDue, again) = state.withLock { state -> (Bool, UInt64?) in
      if state.hold.due(at: now) { return (true, nil) }
      // The server asked for more patience meanwhile.
      return (false, state.hold.isPending ? state.hold.until : nil)
    }
    if isDue { wake() } else if let again { arm(again) }
  }

  private func wake() {
    let onWake = state.withLock { $0.onWake }
    onWake?()
  }

  private func end(_ number: UInt64) {
    let timer = state.withLock { state -> (any HostTimer)? in
      guard state.number == number else { return nil }
      state.onWake = nil
      defer { state.timer = nil }
      return state.timer
    }
    timer?.cancel()
  }

  private final class Subscription: KizunaSyncRealtimeSubscription {
    private let inner: KizunaSyncRealtimeSubscription
    private let end: @Sendable () -> Void

    init(inner: KizunaSyncRealtimeSubscription, end: @escaping @Sendable () -> Void) {
      self.inner = inner
      self.end = end
    }

    func cancel() {
      end()
      inner.cancel()
    }
  }
}
