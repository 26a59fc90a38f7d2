/// The network path port: says whether there is any use in trying.
public protocol KizunaSyncPathMonitor: AnyObject {
  /// Reports the current state, then every change, from any thread.
  func start(onSatisfied: @escaping @Sendable (Bool) -> Void)
  /// Idempotent.
  func cancel()
}
