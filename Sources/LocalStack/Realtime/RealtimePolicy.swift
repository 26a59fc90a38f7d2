import HostKit

/// Whether a token may use a private topic.
package struct RealtimeQuestion: Sendable, Hashable {
  package enum Access: Sendable, Hashable { case read, write }

  /// Without the `realtime:` prefix.
  package var topic: String
  package var access: Access
  package var claims: JSONValue

  package init(_ access: Access, topic: String, claims: JSONValue) {
    self.topic = topic
    self.access = access
    self.claims = claims
  }
}

package enum RealtimeDecision: Sendable, Hashable {
  case allowed, denied
  /// The database that decides cannot be asked.
  case unavailable
}

/// Who may read and write which private topic: what row policies on `realtime.messages` decide on a real server
/// (Realtime wire contract §10).
public struct RealtimePolicy: Sendable {
  public var canRead: @Sendable (_ topic: String, _ claims: JSONValue) -> Bool
  public var canWrite: @Sendable (_ topic: String, _ claims: JSONValue) -> Bool
  /// Decides in the place of the two above, and takes its time.
  package var ask: (@Sendable (RealtimeQuestion) async -> RealtimeDecision)?

  public init(
    canRead: @escaping @Sendable (_ topic: String, _ claims: JSONValue) -> Bool,
    canWrite: @escaping @Sendable (_ topic: String, _ claims: JSONValue) -> Bool
  ) {
    self.canRead = canRead
    self.canWrite = canWrite
  }

  /// Every question goes to `ask`; a socket does nothing else until it is answered.
  package init(asking ask: @escaping @Sendable (RealtimeQuestion) async -> RealtimeDecision) {
    self.init(canRead: { _, _ in false }, canWrite: { _, _ in false })
    self.ask = ask
  }

  /// Nil when somebody has to be asked.
  func decision(_ question: RealtimeQuestion) -> RealtimeDecision? {
    if ask != nil { return nil }
    let isAllowed =
      switch question.access {
      case .read: canRead(question.topic, question.claims)
      case .write: canWrite(question.topic, question.claims)
      }
    return isAllowed ? .allowed : .denied
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
