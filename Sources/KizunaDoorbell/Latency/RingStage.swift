import HostKit

/// The way of a ring, cut where one part of the system hands over to the next.
public enum RingStage: String, Sendable, CaseIterable {
  /// The server has committed the change; the broadcast reaches this host.
  case broadcast
  /// The frame reaches the scheduler.
  case wake
  /// The scheduler starts a run; the session is looked at, the request is built and sent.
  case request
  /// The server works; the answer comes.
  case answer
  /// The answer is read and applied; the transaction is on disk.
  case commit

  /// How the stage is called in tables.
  public var title: String {
    switch self {
    case .broadcast: "server commit → frame received"
    case .wake: "frame received → scheduler woken"
    case .request: "scheduler woken → request sent"
    case .answer: "request sent → response received"
    case .commit: "response received → SQLite committed"
    }
  }
}

/// When one ring passed each point of its way, in `CLOCK_MONOTONIC` nanoseconds.
public struct RingTrace: Sendable, Hashable {
  public var frameReceivedAt: UInt64
  public var wokenAt: UInt64
  public var requestSentAt: UInt64
  public var responseReceivedAt: UInt64
  public var committedAt: UInt64

  public init(
    frameReceivedAt: UInt64, wokenAt: UInt64, requestSentAt: UInt64, responseReceivedAt: UInt64, committedAt: UInt64
  ) {
    self.frameReceivedAt = frameReceivedAt
    self.wokenAt = wokenAt
    self.requestSentAt = requestSentAt
    self.responseReceivedAt = responseReceivedAt
    self.committedAt = committedAt
  }

  /// Whether the points lie in their order; a trace that mixes two rings does not.
  public var isOrdered: Bool {
    frameReceivedAt <= wokenAt && wokenAt <= requestSentAt && requestSentAt <= responseReceivedAt
      && responseReceivedAt <= committedAt
  }

  /// The time of each stage; nil when the points are not in order or the server committed after the frame came.
  public func durations(serverCommittedAt: UInt64) -> [RingStage: UInt64]? {
    guard isOrdered, serverCommittedAt <= frameReceivedAt else { return nil }
    return [
      .broadcast: frameReceivedAt - serverCommittedAt, .wake: wokenAt - frameReceivedAt,
      .request: requestSentAt - wokenAt, .answer: responseReceivedAt - requestSentAt,
      .commit: committedAt - responseReceivedAt,
    ]
  }
}
