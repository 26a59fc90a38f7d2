/// One wanted topic.
///
/// idle → joining → joined → idle …; joining or joined → backingOff or denied → idle.
struct Channel: Sendable {
  enum Phase: Sendable, Hashable {
    /// Wants to be joined as soon as joins may be sent.
    case idle
    /// The join with this reference is unanswered. → joined, idle (connection lost, token refused), backingOff, denied
    case joining(ref: String, sentAt: UInt64)
    /// → idle (connection lost, token refused), backingOff, denied
    case joined(ref: String, since: UInt64)
    /// → idle when the time has come or the connection is lost
    case backingOff(until: UInt64)
    /// → idle when the time has come or other credentials are there
    case denied(FailureReport)
  }

  let topic: ChannelTopic
  var subscribers = 1
  var phase = Phase.idle
  /// Joins refused or unanswered since the last accepted one, classes transient and limit.
  var failedJoins = 0
  /// Failures that the next delay is made from; cleared by staying joined.
  var streak = 0
  var lastFailure: FailureReport?
  /// What a `system` message said about the end that will follow.
  var notice: RefusalTables.ChannelRefusal?
  /// Number of the token the current join was sent with, or that was pushed since.
  var tokenSerial = 0
  /// Since when the channel has stood with that token, while it is joined.
  var tokenSince: UInt64 = 0
  /// Number of the newest join among those of all topics; 0 before the first.
  var joinNumber = 0

  init(_ topic: ChannelTopic) {
    self.topic = topic
  }

  /// Reference of the join that is out or accepted.
  var currentRef: String? {
    switch phase {
    case .joining(let ref, _), .joined(let ref, _): ref
    default: nil
    }
  }

  var isJoining: Bool { if case .joining = phase { true } else { false } }
  var isJoined: Bool { if case .joined = phase { true } else { false } }

  /// Nothing more will happen to it by itself soon.
  var isSettled: Bool {
    switch phase {
    case .joined, .denied: true
    default: false
    }
  }

  var state: ConnectionStatus.TopicState {
    switch phase {
    case .idle: .idle
    case .joining: .joining
    case .joined: .joined
    case .backingOff(let until): .backingOff(until: until)
    case .denied(let report): .denied(reason: report.text)
    }
  }
}
