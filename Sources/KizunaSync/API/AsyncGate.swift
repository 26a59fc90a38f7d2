import HostKit

/// Lets one asynchronous body run at a time, first come first served.
final class AsyncGate: Sendable {
  private let gate = Locked(RequestGate())

  func run<Result>(_ body: () async throws -> Result) async rethrows -> Result {
    await enter()
    defer { gate.withLock { $0.leave() } }
    return try await body()
  }

  private func enter() async {
    await withCheckedContinuation { continuation in
      let entered = gate.withLock { gate -> Bool in
        if gate.enter() { return true }
        gate.wait(continuation)
        return false
      }
      if entered { continuation.resume() }
    }
  }
}
