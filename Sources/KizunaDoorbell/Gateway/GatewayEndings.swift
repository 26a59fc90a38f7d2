import HostKit
import SupabaseSession

/// Who is told that a gateway cannot go on. Told once; whoever comes later is told at once.
final class GatewayEndings: Sendable {
  private struct State {
    var handlers: [@Sendable (GatewayError) -> Void] = []
    var reason: GatewayError?
    var subscriptions: [SessionSubscription] = []
  }

  private let state = Locked(State())

  func add(_ handler: @escaping @Sendable (GatewayError) -> Void) {
    let reason = state.withLock { state -> GatewayError? in
      if state.reason == nil { state.handlers.append(handler) }
      return state.reason
    }
    if let reason { handler(reason) }
  }

  /// Keeps a subscription that may bring the end.
  func keep(_ subscription: SessionSubscription) {
    state.withLock { $0.subscriptions.append(subscription) }
  }

  func end(_ reason: GatewayError) {
    let handlers = state.withLock { state -> [@Sendable (GatewayError) -> Void] in
      defer { state.handlers = [] }
      state.reason = state.reason ?? reason
      return state.handlers
    }
    for handler in handlers { handler(reason) }
  }
}
