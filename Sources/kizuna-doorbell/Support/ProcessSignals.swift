import Glibc
import HostKit

/// What the process does when it is told to stop or to hurry.
///
/// Until a verb says otherwise, SIGINT and SIGTERM end it at once with 130 and SIGHUP is ignored.
final class ProcessSignals: Sendable {
  static let shared = ProcessSignals()

  private struct Handlers {
    var stop: @Sendable () -> Void = { ProcessEnd.exit(.interrupted) }
    var wake: @Sendable () -> Void = {}
  }

  private let handlers = Locked(Handlers())

  private init() {}

  func start() {
    SignalWatch.start([SIGINT, SIGTERM, SIGHUP]) { [handlers] number in
      let now = handlers.withLock { $0 }
      if number == SIGHUP { now.wake() } else { now.stop() }
    }
  }

  func onWake(_ handler: @escaping @Sendable () -> Void) {
    handlers.withLock { $0.wake = handler }
  }

  func onStop(_ handler: @escaping @Sendable () -> Void) {
    handlers.withLock { $0.stop = handler }
  }

  /// Waits for SIGINT or SIGTERM. A second one ends the process at once.
  func stopped() async {
    await withCheckedContinuation { continuation in
      onStop {
        ProcessSignals.shared.onStop { ProcessEnd.exit(.interrupted) }
        continuation.resume()
      }
    }
  }
}
