import PhoenixChannels
import SupabaseRealtime

extension RealtimeStatus {
  /// What keeps it from being ready: a refused token before the end of a connection that was left for it.
  package var standingFailure: FailureReport? {
    let failures = topics.compactMap(\.lastFailure)
    if state == .awaitingCredentials, let refusal = failures.first(where: { $0.failureClass == .auth }) {
      return refusal
    }
    return lastFailure ?? failures.first
  }

  /// The same as a sentence. Where others are not concerned, it names the topics that are.
  package var standingReason: String? {
    guard let failure = standingFailure else { return nil }
    let names = topics.filter { $0.lastFailure == failure }.map(\.topic.name)
    guard !names.isEmpty, names.count < topics.count else { return failure.description }
    let others = names.count > 3 ? " and \(names.count - 3) more" : ""
    return "\(names.prefix(3).joined(separator: ", "))\(others): \(failure)"
  }

  /// One word for the whole of it: `ready`, or what keeps it.
  package var word: String {
    if isReady { return "ready" }
    guard state == .open, !topics.isEmpty else { return state.word }
    let isDenied = topics.contains { if case .denied = $0.state { true } else { false } }
    return isDenied ? "denied" : "joining"
  }
}

extension RealtimeStatus.State {
  /// For logs, `listen` and `status`.
  package var word: String {
    switch self {
    case .stopped: "stopped"
    case .disconnected: "disconnected"
    case .connecting: "connecting"
    case .open: "open"
    case .backingOff: "backing_off"
    case .awaitingCredentials: "awaiting_credentials"
    case .suspended: "suspended"
    }
  }
}
