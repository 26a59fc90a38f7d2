import HostKit
import PhoenixChannels
import SupabaseRealtime
import SupabaseSession

/// Whether a connection that has never been in service will ever be. After the first success it only waits and tries
/// again; before, whoever started it wants to know what is wrong with what they typed.
enum ListenVerdict {
  /// Failed attempts after which an address counts as unreachable; they take a few seconds.
  private static let patience = 3

  /// Nil while there is hope.
  static func failure(_ status: RealtimeStatus) -> CommandFailure? {
    if status.isReady { return nil }
    if case .awaitingCredentials = status.state { return refusal(status) }
    if let failure = status.lastFailure {
      let reason = failure.description
      switch failure.failureClass {
      case .config where failure.status == 404:
        return CommandFailure(
          .configuration,
          "nothing answers a WebSocket at this address (HTTP 404); check the path of --realtime-url or realtimeURL, which usually ends with /realtime/v1/websocket, or else url"
        )
      case .config:
        return CommandFailure(.configuration, "the server cannot be used as configured: \(reason)")
      case .transient where failure.status == 403 && status.attempt >= patience:
        return CommandFailure(
          .authentication,
          "the server does not let this client connect: \(reason); "
            + "see that the publishable key is the one of this project, and try --vsn 1.0.0 with an old server")
      case .transient where status.attempt >= patience && failure.status != nil:
        return CommandFailure(.unreachable, "the server lets nobody connect: \(reason)")
      case .transient where status.attempt >= patience:
        return CommandFailure(.unreachable, "the server cannot be reached: \(reason)")
      case .transient, .limit, .auth, .denied: break
      }
    }
    let refusals = status.topics.compactMap { topic -> FailureReport? in
      if case .denied = topic.state { topic.lastFailure } else { nil }
    }
    guard !status.topics.isEmpty, refusals.count == status.topics.count, let first = refusals.first else { return nil }
    if let mistake = refusals.first(where: { $0.failureClass == .config }) { return misconfigured(mistake) }
    return CommandFailure(
      .authentication,
      "the server does not let this user join: \(first); see that the access token is the one of a user who may, "
        + "or give --public for channels that need none")
  }

  /// What no other user or token would change.
  private static func misconfigured(_ report: FailureReport) -> CommandFailure {
    let remedy =
      report.text.hasPrefix("PrivateOnly") || report.text.contains("only allows private channels")
      ? "leave --public away" : "see the project's settings, and the address and key given"
    return CommandFailure(.configuration, "the server cannot be used as configured: \(report); \(remedy)")
  }

  /// The key opens the connection; the token goes with each join. So what was refused says which of them it was.
  private static func refusal(_ status: RealtimeStatus) -> CommandFailure {
    if let failure = status.topics.lazy.compactMap(\.lastFailure).first(where: { $0.failureClass == .auth }) {
      return CommandFailure(.authentication, "the server does not accept the access token: \(failure)")
    }
    guard let failure = status.lastFailure else {
      return CommandFailure(
        .authentication,
        "nobody is signed in, so private channels cannot be joined; "
          + "give --access-token-file, or --public for channels that need none")
    }
    return CommandFailure(.authentication, "the server does not accept the publishable key: \(failure)")
  }

  /// The same for a session that has no token.
  /// - Parameter count: how often in a row it had none.
  static func failure(_ session: SessionFailure, count: Int) -> CommandFailure? {
    switch session.kind {
    case .authentication, .configuration: CommandFailure(session.exitCode, session.message)
    case .transient: count >= patience ? CommandFailure(session.exitCode, session.message) : nil
    case .stopped: nil
    }
  }
}
