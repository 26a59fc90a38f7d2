import HostKit
import Testing

@testable import KizunaSync

/// A path that tests satisfy and break.
final class ScriptedPath: KizunaSyncPathMonitor, Sendable {
  private let report = Locked<(@Sendable (Bool) -> Void)?>(nil)
  let starts = Locked(0)
  let cancels = Locked(0)
  let initial: Bool?

  /// - Parameter initial: reported from within `start`; nil reports nothing.
  init(initial: Bool? = nil) {
    self.initial = initial
  }

  func start(onSatisfied: @escaping @Sendable (Bool) -> Void) {
    starts.withLock { $0 += 1 }
    report.withLock { $0 = onSatisfied }
    if let initial { onSatisfied(initial) }
  }

  func cancel() { cancels.withLock { $0 += 1 } }
  func set(_ satisfied: Bool) { report.withLock { $0 }?(satisfied) }
}

final class ScriptedForeground: KizunaSyncForegroundSource, Sendable {
  private let report = Locked<(@Sendable () -> Void)?>(nil)
  let stops = Locked(0)
  func start(onForeground: @escaping @Sendable () -> Void) { report.withLock { $0 = onForeground } }
  func stop() { stops.withLock { $0 += 1 } }
  func come() { report.withLock { $0 }?() }
}

/// Stands for the host's own source, which real clock jumps of the machine would ring.
final class SilentResumeDetector: ResumeDetector {
  func start(onForeground: @escaping @Sendable () -> Void) {}
  func stop() {}
}

final class ScriptedBell: KizunaSyncRealtimeWakeup, Sendable {
  final class Subscription: KizunaSyncRealtimeSubscription {
    let cancels = Locked(0)
    func cancel() { cancels.withLock { $0 += 1 } }
  }

  let topics = Locked<[[String]]>([])
  let subscription = Subscription()
  private let onWake = Locked<(@Sendable () -> Void)?>(nil)
  private let during: @Sendable () -> Void

  /// - Parameter during: called from within `subscribe`.
  init(during: @escaping @Sendable () -> Void = {}) {
    self.during = during
  }

  func subscribe(topics: [String], onWake: @escaping @Sendable () -> Void) -> KizunaSyncRealtimeSubscription {
    self.topics.withLock { $0.append(topics) }
    self.onWake.withLock { $0 = onWake }
    during()
    return subscription
  }

  func ring() { onWake.withLock { $0 }?() }
}

/// The body of a run: counts, and holds calls while a test wants it to.
final class RunBody: Sendable {
  private struct State {
    var calls = 0
    var isHeld = false
    var waiting: [CheckedContinuation<Void, Never>] = []
    var failure: (any Error)?
  }
  private let state = Locked(State())

  var calls: Int { state.withLock { $0.calls } }
  var failure: (any Error)? {
    get { state.withLock { $0.failure } }
    set { state.withLock { $0.failure = newValue } }
  }

  func hold() { state.withLock { $0.isHeld = true } }

  func release() {
    let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      defer {
        state.isHeld = false
        state.waiting = []
      }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  func run() async throws {
    let held = state.withLock { state -> Bool in
      state.calls += 1
      return state.isHeld
    }
    if held {
      await withCheckedContinuation { continuation in
        let late = state.withLock { state -> Bool in
          if state.isHeld { state.waiting.append(continuation) }
          return !state.isHeld
        }
        if late { continuation.resume() }
      }
    }
    if let failure { throw failure }
  }
}
