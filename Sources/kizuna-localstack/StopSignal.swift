import Glibc
import HostKit

/// Waits for `SIGTERM` or `SIGINT`.
final class StopSignal: Sendable {
  private struct State {
    var hasCome = false
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Locked(State())

  init() {
    SignalWatch.start([SIGTERM, SIGINT]) { [weak self] _ in self?.raise() }
  }

  private func raise() {
    let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      state.hasCome = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for continuation in waiting { continuation.resume() }
  }

  func wait() async {
    await withCheckedContinuation { continuation in
      let hasCome = state.withLock { state -> Bool in
        if !state.hasCome { state.waiting.append(continuation) }
        return state.hasCome
      }
      if hasCome { continuation.resume() }
    }
  }
}
