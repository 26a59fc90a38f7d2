import HostKit

/// The numbers of a Realtime server, with its real defaults (Realtime wire contract §17). Durations in nanoseconds.
public struct RealtimeSettings: Sendable {
  /// A refused upgrade is answered after so long.
  public var connectErrorBackoff: UInt64 = .seconds(2)
  /// A refused join is answered after so long, and blocks its socket until then.
  public var channelErrorBackoff: UInt64 = .seconds(5)
  /// An accepted join takes so long, and blocks its socket until then.
  public var joinDelay: UInt64 = 0
  /// A socket without client bytes is closed after so long, at the next check.
  public var idleTimeout: UInt64 = .seconds(60)
  public var idleCheckInterval: UInt64 = .seconds(6)
  /// A token is looked at again at the latest after so long.
  public var tokenCheckInterval: UInt64 = .seconds(300)
  /// Sockets that once joined and have no channel are killed at the next sweep.
  public var emptySocketSweep: UInt64 = .seconds(600)
  /// `Replication connection established` follows the join after so long, where it was asked for.
  public var replicationReadyDelay: UInt64 = 0
  public var maximumSockets = 200
  public var maximumChannelsPerSocket = 100
  public var maximumPayloadBytes = 3_000_500
  /// Joins of public channels are refused.
  public var privateOnly = false

  public init() {}
}
