extension ConnectionMachine {
  /// What the connection is doing right now.
  public var status: ConnectionStatus {
    ConnectionStatus(
      state: state, isReady: openTransport != nil && !channels.isEmpty && channels.allSatisfy(\.isJoined),
      attempt: schedule.streak, nextAttemptAt: nextAttemptAt, lastFailure: lastFailure,
      topics: channels.map {
        ConnectionStatus.Topic(
          topic: $0.topic, state: $0.state, subscribers: $0.subscribers, lastFailure: $0.lastFailure,
          failuresInARow: $0.failedJoins)
      }, lastRoundTrip: heartbeat.lastRoundTrip, counters: counters)
  }

  private var state: ConnectionStatus.State {
    switch plan {
    case .stopped: return .stopped
    case .disconnected: return .disconnected
    case .live:
      if case .open = link { return .open }
      return .connecting
    case .waiting(let until): return .backingOff(until: until)
    case .suspended(let until): return .suspended(until: until)
    case .awaitingCredentials: return .awaitingCredentials
    }
  }

  private var nextAttemptAt: UInt64? {
    switch plan {
    case .waiting(let until), .suspended(let until): until
    case .stopped, .disconnected, .live, .awaitingCredentials: nil
    }
  }
}
