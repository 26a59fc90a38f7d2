import HostKit

/// When a lost or refused connection is tried again.
public struct ReconnectPolicy: Sendable, Hashable {
  /// Delay of the first retry, nanoseconds. The real delay is drawn from the upper half, [d/2, d].
  public var base: UInt64 = .seconds(1)
  /// What the delay is multiplied with after each failure.
  public var factor: Double = 2
  /// Longest delay, nanoseconds.
  public var cap: UInt64 = .seconds(30)
  /// Delay after the server named a limit, and after closes that forced us out, nanoseconds; drawn from [d/2, d].
  public var limitDelay: UInt64 = .seconds(60)
  /// Nanoseconds a connection must have been ready before the next failure starts at `base` again.
  public var stabilityWindow: UInt64 = .seconds(30)
  /// Attempts that `budgetWindow` may hold; then the machine probes slowly.
  public var budget = 40
  /// Length of the sliding window of `budget`, nanoseconds.
  public var budgetWindow: UInt64 = .seconds(600)
  /// A hint (network back, resume, …) brings the next attempt to a moment drawn from [now, now + this], nanoseconds.
  public var hintSpread: UInt64 = .seconds(1)
  /// Nanoseconds from one attempt to the next that hints can reach while the budget is spent.
  public var hintSpacing: UInt64 = .seconds(30)
  /// A longer `Retry-After` is cut to this, nanoseconds.
  public var maximumRetryAfter: UInt64 = .seconds(600)
  /// Answers "500" in a row after which fresh credentials are tried, because some of those hide a refused token.
  public var serverErrorsBeforeFreshCredentials = 3

  public init() {}
}

/// How a silent connection is found out. The server drops clients that send nothing for 60 s, and answers nothing while
/// a join is being worked on (Realtime wire contract §8).
public struct HeartbeatPolicy: Sendable, Hashable {
  /// Nanoseconds between heartbeats.
  public var interval: UInt64 = .seconds(25)
  /// Share of the interval by which each is moved at random, to both sides.
  public var spread: Double = 0.1
  /// Nanoseconds an answer may take while no join is outstanding. While one is, the join deadline comes on top, counted
  /// from the last byte received.
  public var deadline: UInt64 = .seconds(10)
  /// Nanoseconds the answer may take after a hint that the host or its network changed.
  public var probeDeadline: UInt64 = .seconds(5)
  /// A deadline that is noticed so late tells that this process slept, so the answer may lie unread and gets
  /// `probeDeadline` once more, nanoseconds.
  public var latenessOfSleep: UInt64 = .seconds(2)
  /// Nanoseconds from one heartbeat to the next that hints can ask for.
  public var probeSpacing: UInt64 = .seconds(1)

  public init() {}
}

/// How topics are joined. Joins are a queue in the server: one slow or refused join holds up all that follow.
public struct JoinPolicy: Sendable, Hashable {
  /// Nanoseconds from handing the join to an open connection until it counts as failed.
  public var deadline: UInt64 = .seconds(25)
  /// Joins that may be unanswered at once after one was accepted. Before that, and after a refusal, it is one.
  public var maximumOutstanding = 4
  /// Delay before a refused or closed topic is joined again, nanoseconds; drawn from [d/2, d]. Also between questions for
  /// credentials that were not to be had.
  public var backoffBase: UInt64 = .seconds(1)
  /// What that delay is multiplied with after each failure.
  public var backoffFactor: Double = 2
  /// Longest of these delays, nanoseconds.
  public var backoffCap: UInt64 = .seconds(30)
  /// Failed joins of one topic in a row, of the classes transient and limit, after which the connection is replaced.
  public var failuresBeforeReplacing = 20
  /// Nanoseconds between two such replacements at least.
  public var replacementSpacing: UInt64 = .seconds(600)
  /// Nanoseconds after the first accepted join until the subscribers are rung, even if other joins are still out.
  public var ringDelay: UInt64 = .seconds(1)
  /// Joins that were given up and leaves that a connection remembers, because their answers may still come. The oldest are
  /// forgotten first.
  public var maximumRemembered = 256

  public init() {}
}

/// Everything the machine can be told about its connection.
public struct ConnectionPolicy: Sendable, Hashable {
  public var reconnect = ReconnectPolicy()
  public var heartbeat = HeartbeatPolicy()
  public var join = JoinPolicy()
  /// Nanoseconds from the attempt to the accepted upgrade. The server takes 2 s to refuse one.
  public var handshakeDeadline: UInt64 = .seconds(15)
  /// Nanoseconds by which the transport gives up sooner than that: it knows who was silent.
  public var handshakeMargin: UInt64 = .seconds(1)
  /// Nanoseconds after which a connection that was asked to close is given up.
  public var closeDeadline: UInt64 = .milliseconds(1_500)
  /// Nanoseconds a connection without topics is kept. The server kills such sockets within 10 minutes.
  public var idleLinger: UInt64 = .seconds(30)
  /// Nanoseconds between retries of what only an operator or a new configuration can mend, and while the attempt budget
  /// is spent or the network is known to be away.
  public var slowRetry: UInt64 = .seconds(300)
  /// Share of `slowRetry` by which each is moved at random, to both sides.
  public var slowRetrySpread: Double = 0.5
  /// Joins private channels, whose messages policies guard. Public and private are two rooms of the same name.
  public var privateChannels = true
  /// Asks for the notice that database broadcasts flow; it is answered with a second ring.
  public var replicationReady = true
  /// Joins wait for an access token. Without it topics are joined with the key of the connection.
  public var usesCredentials = true

  public init() {}
}
