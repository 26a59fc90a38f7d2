import HostKit
import KizunaSync

/// That the host slept, or this process was stopped, told to more than the scheduler: connections may be dead without
/// knowing, and the clock that counts a token's life may have stood still.
///
/// A jump of the calendar tells of a suspend, a timer that fires late of a stop; both mean the same here.
final class ResumeHints: KizunaSyncForegroundSource, Sendable {
  private struct Listeners {
    var onForeground: (@Sendable () -> Void)?
    var onJump: (@Sendable () -> Void)?
  }

  private let source: any KizunaSyncForegroundSource & Sendable
  private let onResume: @Sendable () -> Void
  private let listeners = Locked(Listeners())

  /// - Parameters:
  ///   - source: tells of jumps of the calendar.
  ///   - onResume: called first, before the scheduler hears of it.
  init(
    _ source: any KizunaSyncForegroundSource & Sendable = KizunaSyncResumeSource(),
    _ onResume: @escaping @Sendable () -> Void
  ) {
    self.source = source
    self.onResume = onResume
  }

  /// Calls `body` for a jump of the calendar only: for who has late timers of its own.
  func onJump(_ body: @escaping @Sendable () -> Void) {
    listeners.withLock { $0.onJump = body }
  }

  /// A timer was late by more than the threshold.
  func timerWasLate() {
    onResume()
    listeners.withLock { $0.onForeground }?()
  }

  func start(onForeground: @escaping @Sendable () -> Void) {
    listeners.withLock { $0.onForeground = onForeground }
    source.start { [weak self] in
      guard let self else { return }
      timerWasLate()
      listeners.withLock { $0.onJump }?()
    }
  }

  func stop() {
    listeners.withLock { $0.onForeground = nil }
    source.stop()
  }
}
