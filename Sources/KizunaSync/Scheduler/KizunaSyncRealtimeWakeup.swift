/// The doorbell port: something that says "a table changed, look". The scheduler takes one instead of knowing WebSockets.
public protocol KizunaSyncRealtimeWakeup: AnyObject {
  /// Called once with all topics (`kizunasync:<table>`). `onWake` is to be called for every broadcast on any of them,
  /// whatever it holds, and after every join that succeeds, from any thread.
  func subscribe(topics: [String], onWake: @escaping @Sendable () -> Void) -> KizunaSyncRealtimeSubscription
}

/// A subscription that can be ended.
public protocol KizunaSyncRealtimeSubscription: AnyObject, Sendable {
  /// Ends the callbacks. Idempotent, from any thread.
  func cancel()
}
