import HostKit

/// Who is told about new tokens. Told on the session's thread, in order.
final class TokenSubscribers: Sendable {
  typealias Handler = @Sendable (AccessToken?) -> Void

  private struct State {
    var handlers: [UInt64: Handler] = [:]
    var nextID: UInt64 = 0
  }

  private let state = Locked(State())

  func add(_ handler: @escaping Handler) -> UInt64 {
    state.withLock { state in
      state.nextID += 1
      state.handlers[state.nextID] = handler
      return state.nextID
    }
  }

  func remove(_ id: UInt64) {
    state.withLock { _ = $0.handlers.removeValue(forKey: id) }
  }

  func removeAll() {
    state.withLock { $0.handlers = [:] }
  }

  func tell(_ token: AccessToken?, only id: UInt64? = nil) {
    let ids = state.withLock { state in state.handlers.keys.filter { id == nil || $0 == id }.sorted() }
    for id in ids {
      // Looked up one by one: a handler may cancel another.
      state.withLock { $0.handlers[id] }?(token)
    }
  }
}

/// Ends with `cancel()`, or when it is let go.
public final class SessionSubscription: Sendable {
  private let subscribers: TokenSubscribers
  private let id: UInt64

  init(_ subscribers: TokenSubscribers, id: UInt64) {
    self.subscribers = subscribers
    self.id = id
  }

  deinit { cancel() }

  /// Afterwards the handler is not called any more, except for a call already under way. Idempotent.
  public func cancel() {
    subscribers.remove(id)
  }
}
