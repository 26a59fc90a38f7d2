import HostKit
import PhoenixChannels
import SupabaseRealtime

/// Whether a connection that has never been in service will ever be. After the first success it only waits and tries
/// again; before, whoever started it wants to know what is wrong with what they typed.
enum ListenVerdict {
  /// Failed attempts after which an address counts as unreachable; they take a few seconds.
  private static let patience = 3

  /// Nil while there is hope.
  static func failure(_ status: RealtimeStatus) -> CommandFailure? {
    if status.isReady { return nil }
    let reason = status.lastFailure?.description ?? "no reason was given"
    if case .awaitingCredentials = status.state {
      return CommandFailure(.authentication, "the server does not accept the key or the token: \(reason)")
    }
    if let failure = status.lastFailure {
      switch failure.failureClass {
      case .config:
        return CommandFailure(.configuration, "the server cannot be used as configured: \(reason)")
      case .transient where status.attempt >= patience:
        return CommandFailure(.unreachable, "the server cannot be reached: \(reason)")
      case .transient, .limit, .auth, .denied: break
      }
    }
    let refusals = status.topics.compactMap { topic -> FailureReport? in
      if case .denied = topic.state { topic.lastFailure } else { nil }
    }
    guard !status.topics.isEmpty, refusals.count == status.topics.count, let first = refusals.first else { return nil }
    return CommandFailure(.authentication, "the server does not let this user join: \(first)")
  }
}
