/// Numbers the transports of one machine; events of an earlier one are recognised by it.
public struct TransportID: Sendable, Hashable, CustomStringConvertible {
  public let number: UInt64

  init(_ number: UInt64) {
    self.number = number
  }

  public var description: String { "transport \(number)" }
}

/// What happens to a `ConnectionMachine`.
public enum ConnectionEvent: Sendable {
  case start
  case stop
  /// One more subscriber wants this topic.
  case subscribe(ChannelTopic)
  /// One subscriber less for each. Together, so that nothing is joined in the room that the first ones leave.
  case unsubscribe([ChannelTopic])
  case credentials(CredentialUpdate)
  case hint(ConnectionHint)
  case transport(TransportID, TransportEvent)
  /// A timer that an effect scheduled.
  case timer(TimerToken)
}

/// News from whoever owns the session: an answer to `requestCredentials`, or a push of its own.
public enum CredentialUpdate: Sendable {
  case token(String)
  /// Nobody is signed in any more.
  case withdrawn
  /// It could not be found out; ask again later.
  case unavailable
  /// The newest token ends within seconds: joins wait until the owner was asked for another.
  case ending
}

/// Something outside the connection suggests that now is a good moment to try or to look.
public enum ConnectionHint: String, Sendable, Hashable, CaseIterable {
  case pathSatisfied, pathUnsatisfied, foreground, resume, manual
}

public enum TransportEvent: Sendable {
  case opened
  /// A message, read or not readable. `receivedAt` is `CLOCK_MONOTONIC` nanoseconds, 0 where unknown.
  case frame(Result<PhoenixFrame, PhoenixDecodingError>, receivedAt: UInt64)
  /// A message was dropped for its size.
  case tooLarge(bytes: Int)
  case pong
  /// The upgrade was answered with another status than 101. Final.
  case refused(status: Int, retryAfterSeconds: Int?, body: String?)
  /// The attempt or the connection broke. Final. `isConfiguration` when trying again cannot help, as with a bad URL.
  case failed(String, isConfiguration: Bool)
  /// Final.
  case closed(code: UInt16?, reason: String)
}

/// A timer as data. A firing whose number is not the one armed last for its kind changes nothing.
public struct TimerToken: Sendable, Hashable {
  public enum Kind: Sendable, Hashable {
    /// The next attempt.
    case reconnect
    /// The upgrade must have been answered.
    case handshake
    /// The close must be done.
    case close
    /// The next heartbeat.
    case heartbeat
    /// The heartbeat must have been answered.
    case answer
    /// The connection counts as stable.
    case stability
    /// A connection without topics is closed.
    case idle
    /// Credentials are asked for again.
    case credentials
    /// The subscribers are rung even though joins are still out.
    case ring
    /// Joins that were held back may go.
    case joinHold
    /// The join must have been answered.
    case join(ChannelTopic)
    /// The topic is joined again.
    case rejoin(ChannelTopic)
  }

  public let kind: Kind
  let number: UInt64
}
