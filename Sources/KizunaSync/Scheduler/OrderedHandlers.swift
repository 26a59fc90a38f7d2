import HostKit

/// Handlers that hear every value in the order it was published, without a lock held while they run.
///
/// The thread that publishes delivers; when another one is delivering already, it delivers this value too. A handler may
/// publish, add and remove handlers.
final class OrderedHandlers<Value: Sendable>: Sendable {
  private struct State {
    var handlers: [(id: UInt64, call: @Sendable (Value) -> Void)] = []
    var nextID: UInt64 = 0
    var waiting: [(value: Value, to: UInt64?)] = []
    var delivering = false
  }

  private let state = Locked(State())

  /// Adds a handler and gives it `first`, before anything published later.
  /// - Returns: a closure that removes it; a call already under way ends normally.
  func add(first: Value?, _ handler: @escaping @Sendable (Value) -> Void) -> @Sendable () -> Void {
    let id = state.withLock { state -> UInt64 in
      state.nextID += 1
      state.handlers.append((state.nextID, handler))
      if let first { state.waiting.append((first, to: state.nextID)) }
      return state.nextID
    }
    deliver()
    return { [weak self] in self?.state.withLock { $0.handlers.removeAll { $0.id == id } } }
  }

  func publish(_ value: Value) {
    enqueue(value)
    deliver()
  }

  /// The first half of `publish`, for a caller that decides the order under a lock of its own.
  func enqueue(_ value: Value) {
    state.withLock { state in
      if !state.handlers.isEmpty { state.waiting.append((value, to: nil)) }
    }
  }

  /// The second half: calls the handlers with whatever waits.
  func deliver() {
    while true {
      let next = state.withLock { state -> (Value, [@Sendable (Value) -> Void])? in
        guard !state.delivering, !state.waiting.isEmpty else { return nil }
        state.delivering = true
        let (value, id) = state.waiting.removeFirst()
        return (value, state.handlers.filter { id == nil || $0.id == id }.map(\.call))
      }
      guard let (value, handlers) = next else { return }
      for handler in handlers { handler(value) }
      state.withLock { $0.delivering = false }
    }
  }
}
