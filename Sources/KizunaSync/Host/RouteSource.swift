import HostKit

/// The host's routing, as far as the path monitor needs it. Tests script one.
protocol RouteSource: AnyObject, Sendable {
  /// Whether the host has a way to the address; nil when it cannot be asked.
  func isReachable(_ address: IPAddress) -> Bool?
  /// Calls `onChange` after changes of links, addresses and routes, until the returned closure is called; nil when
  /// changes cannot be watched.
  func watch(_ onChange: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)?
}
