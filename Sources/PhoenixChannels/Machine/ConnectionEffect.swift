/// What the runner of a `ConnectionMachine` has to do, in this order.
public enum ConnectionEffect: Sendable, Hashable {
  /// Open a transport; its events carry this number.
  case connect(TransportID)
  /// End a transport. Its final event still comes, or the machine gives it up.
  case close(TransportID, code: UInt16, reason: String)
  /// The transport did not end in time: let go of it and drop its events.
  case abandon(TransportID)
  case send(TransportID, PhoenixFrame)
  /// Feed `timer(token)` at `deadline`, nanoseconds on the scale of `now`.
  case schedule(TimerToken, at: UInt64)
  case cancel(TimerToken)
  /// Ask the session owner for a token and feed the answer. With `refresh` the current one was refused.
  case requestCredentials(refresh: Bool)
  case ring(ConnectionRing)
  /// The stop is complete: no transport is open and no timer is armed.
  case stopped
  case note(ConnectionNote)
}

/// Something may have changed at the server.
public struct ConnectionRing: Sendable, Hashable {
  public enum Cause: Sendable, Hashable {
    /// The topics were joined: what was sent before is gone.
    case joined
    /// An application's broadcast of this name.
    case broadcast(event: String)
    /// A row change of `postgres_changes`.
    case change
    /// From now on broadcasts of the database arrive.
    case replicationReady
    /// A message was dropped for its size.
    case oversized
  }

  /// The topics it is about, in the order they were subscribed to.
  public var topics: [ChannelTopic]
  public var cause: Cause
  /// `CLOCK_MONOTONIC` nanoseconds when the frame behind it was received; 0 when there is none.
  public var receivedAt: UInt64

  public init(topics: [ChannelTopic], cause: Cause, receivedAt: UInt64) {
    self.topics = topics
    self.cause = cause
    self.receivedAt = receivedAt
  }
}

/// What is worth a line in a log. Holds no secret and no message body.
public enum ConnectionNote: Sendable, Hashable {
  case connecting(attempt: Int)
  case opened
  /// The connection or the attempt is over.
  case lost(FailureReport)
  /// The next attempt is due then, nanoseconds.
  case waiting(until: UInt64)
  case suspended(until: UInt64)
  case awaitingCredentials
  case heartbeatMissed
  case joined(ChannelTopic)
  case refused(ChannelTopic, FailureReport)
  case left(ChannelTopic)
  case replaced(FailureReport)
  /// A `system` message that ends nothing, for example about `postgres_changes`.
  case warning(ChannelTopic, FailureReport)
  case undecodable(PhoenixDecodingError)
  case oversized(bytes: Int)
}
