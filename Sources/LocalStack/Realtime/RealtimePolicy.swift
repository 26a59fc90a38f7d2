import HostKit

/// Who may read and write which private topic: what row policies on `realtime.messages` decide on a real server
/// (Realtime wire contract §10).
public struct RealtimePolicy: Sendable {
  public var canRead: @Sendable (_ topic: String, _ claims: JSONValue) -> Bool
  public var canWrite: @Sendable (_ topic: String, _ claims: JSONValue) -> Bool

  public init(
    canRead: @escaping @Sendable (_ topic: String, _ claims: JSONValue) -> Bool,
    canWrite: @escaping @Sendable (_ topic: String, _ claims: JSONValue) -> Bool
  ) {
    self.canRead = canRead
    self.canWrite = canWrite
  }

  /// Signed-in users may use every topic that begins so; the service role every topic; nobody else any.
  public static func signedIn(topicPrefix: String = "kizunasync:") -> RealtimePolicy {
    let isAllowed: @Sendable (String, JSONValue) -> Bool = { topic, claims in
      switch claims["role"]?.stringValue {
      case "service_role": true
      case "authenticated": topic.hasPrefix(topicPrefix)
      default: false
      }
    }
    return RealtimePolicy(canRead: isAllowed, canWrite: isAllowed)
  }
}
