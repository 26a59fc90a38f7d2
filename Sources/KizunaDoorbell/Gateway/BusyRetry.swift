import HostKit
import KizunaSync

/// Asks for another run soon after one that found the database locked by another program.
///
/// Every statement has already waited for the lock by then. The server is not to blame, so the growing delays that
/// protect it would only keep the replica behind after the lock is gone.
final class BusyRetry: Sendable {
  static let delay = UInt64.seconds(2)

  private struct State {
    var wake: (@Sendable () -> Void)?
    var timer: (any HostTimer)?
  }

  private let clock: any HostClock
  private let state = Locked(State())

  init(clock: any HostClock) {
    self.clock = clock
  }

  /// - Parameter wake: asks for a run.
  func begin(_ wake: @escaping @Sendable () -> Void) {
    state.withLock { $0.wake = wake }
  }

  /// Takes note of how a run failed.
  func failed(_ error: any Error) {
    guard (error as? KizunaSyncError)?.code == ErrorCode.storeBusy.rawValue else { return }
    state.withLock { state in
      guard let wake = state.wake, state.timer == nil else { return }
      state.timer = clock.schedule(after: Self.delay) { [weak self] in
        self?.state.withLock { $0.timer = nil }
        wake()
      }
    }
  }

  func end() {
    state.withLock { state in
      state.wake = nil
      state.timer?.cancel()
      state.timer = nil
    }
  }
}
