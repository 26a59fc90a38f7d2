/// What a ``FaultProxy`` has done since it was made.
public struct FaultCounts: Sendable, Hashable {
  /// Connections that clients made and the proxy took.
  public var accepted = 0
  /// Of those, the ones that are not over. One with a swallowed direction goes on until the rule changes.
  public var open = 0
  /// Connections ended by ``FaultProxy/cut(_:)`` or ``FaultProxy/cutNext(from:afterBytes:_:)``.
  public var cut = 0
  /// Connections reset because the server did not accept.
  public var unreachable = 0
  /// Bytes that clients sent and the proxy took, whatever became of them.
  public var bytesFromClients = 0
  /// The same of the server.
  public var bytesFromServer = 0
  /// Those of them that were thrown away.
  public var swallowedFromClients = 0
  public var swallowedFromServer = 0

  public init() {}
}
