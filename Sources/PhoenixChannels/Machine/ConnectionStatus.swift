/// What a connection is doing, as a value.
public struct ConnectionStatus: Sendable, Hashable {
  public enum State: Sendable, Hashable {
    case stopped
    /// Started, but nobody wants a topic.
    case disconnected
    case connecting
    /// The WebSocket stands. Says nothing about topics; see `isReady`.
    case open
    /// A retry is due at this time, nanoseconds of the host's clock.
    case backingOff(until: UInt64)
    /// Nothing is tried until new credentials come.
    case awaitingCredentials
    /// The network is away, the attempt budget is spent, or only an operator can help; tried again then, or at a hint.
    case suspended(until: UInt64)
  }

  public enum TopicState: Sendable, Hashable {
    case idle
    case joining
    case joined
    case backingOff(until: UInt64)
    case denied(reason: String)
  }

  public struct Topic: Sendable, Hashable {
    public var topic: ChannelTopic
    public var state: TopicState
    public var subscribers: Int
    /// Why it was last refused or closed; nil since the last accepted join.
    public var lastFailure: FailureReport?
    /// Joins refused or unanswered since the last accepted one.
    public var failuresInARow: Int
  }

  public var state: State
  /// The connection is open and every wanted topic is joined.
  public var isReady: Bool
  /// Failed or lost connections since the last stable one; 0 when all is well.
  public var attempt: Int
  /// When the next attempt is due, nanoseconds of the host's clock; nil when none is planned.
  public var nextAttemptAt: UInt64?
  /// Why the last connection ended; nil since the last one that became stable.
  public var lastFailure: FailureReport?
  public var topics: [Topic]
  /// Nanoseconds from the newest answered heartbeat to its answer; nil before the first. Includes what the server was
  /// busy with.
  public var lastRoundTrip: UInt64?
  public var counters: ConnectionCounters
}

/// Totals since the machine was made.
public struct ConnectionCounters: Sendable, Hashable {
  public var attempts = 0
  public var opened = 0
  public var joinsSent = 0
  public var joinsAccepted = 0
  public var joinsRefused = 0
  public var joinsUnanswered = 0
  public var heartbeatsSent = 0
  public var heartbeatsMissed = 0
  public var framesReceived = 0
  /// Replies, closes and events that belong to nothing current.
  public var framesUnmatched = 0
  public var framesUndecodable = 0
  public var framesOversized = 0
  public var broadcasts = 0
  public var rings = 0
  public var credentialRequests = 0
  public var tokensPushed = 0
  public var socketsReplaced = 0
  /// Attempts and connections that failed, by class.
  public var connectionFailures: [FailureClass: Int] = [:]
  /// Joins that were refused or unanswered and channels that were ended, by class.
  public var topicFailures: [FailureClass: Int] = [:]
  /// Upgrade answers, reasons, messages and close codes that are not known; they were taken for transient.
  public var refusalsUnknown = 0
}
