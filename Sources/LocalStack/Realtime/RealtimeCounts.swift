import HostKit

/// What the Realtime server has counted since it was started.
public struct RealtimeCounts: Sendable, Hashable {
  /// Of one topic; its public and its private room together.
  public struct Topic: Sendable, Hashable {
    /// Sockets that have it joined now.
    public var members: Int
    public var acceptedJoins: Int
  }

  /// WebSockets that are open now.
  public var openSockets: Int
  public var acceptedSockets: Int
  /// Joins of a topic that their socket had joined already.
  public var repeatedJoins: Int
  /// Without the `realtime:` prefix; every topic that was ever joined.
  public var topics: [String: Topic]

  var json: JSONValue {
    [
      "openSockets": .int(openSockets), "acceptedSockets": .int(acceptedSockets), "repeatedJoins": .int(repeatedJoins),
      "topics": .object(
        topics.mapValues { ["members": .int($0.members), "acceptedJoins": .int($0.acceptedJoins)] }),
    ]
  }
}
