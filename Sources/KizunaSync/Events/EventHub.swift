import HostKit

/// Carries engine events to the app: one at a time, in the order they were emitted, on one thread of its own.
///
/// A handler may call the client back and may subscribe or unsubscribe. A handler hears the events emitted between its
/// subscription and its end; after an unsubscribe has returned no further call starts.
final class EventHub: Sendable {
  typealias Handler = @Sendable (KizunaSyncEngineEvent) -> Void

  private struct State {
    var handlers: [(id: UInt64, call: Handler)] = []
    var lastID: UInt64 = 0
  }

  private let state = Locked(State())
  private let thread = SerialThread(name: "kizuna-events")

  func subscribe(_ handler: @escaping Handler) -> @Sendable () -> Void {
    let id = state.withLock { state -> UInt64 in
      state.lastID += 1
      state.handlers.append((state.lastID, handler))
      return state.lastID
    }
    return { [weak self] in self?.state.withLock { $0.handlers.removeAll { $0.id == id } } }
  }

  /// Returns at once.
  func emit(_ event: KizunaSyncEngineEvent) {
    let last = state.withLock { $0.handlers.isEmpty ? nil : $0.lastID }
    guard let last else { return }
    thread.run { [self] in
      // Read one by one: a handler may have ended another one's subscription.
      var next: UInt64 = 0
      while let handler = state.withLock({ state in state.handlers.first { $0.id > next && $0.id <= last } }) {
        handler.call(event)
        next = handler.id
      }
    }
  }

  /// Ends every subscription.
  func endAll() {
    state.withLock { $0.handlers = [] }
  }

  /// Ends every subscription, and returns when the handler that may be running has ended and the thread with it.
  func shutDown() async {
    endAll()
    await thread.stopAndWait()
  }
}
