import HTTPClient
import HostKit
import SupabaseSession

extension GatewayConfiguration {
  /// The session owner this configuration asks for.
  ///
  /// - Parameter stateFile: where refresh tokens are kept between processes; nil keeps them in memory.
  public func makeSession(
    http: any HTTPTransport, stateFile: String?, clock: any HostClock = SystemClock.shared, log: HostLog = .none
  ) -> SupabaseSession {
    let source: SupabaseSession.Source =
      switch session {
      case .accessToken(let secret):
        if case .file(let path) = secret.source { .accessTokenFile(path) } else { .accessToken(secret.value) }
      case .password(let email, let password):
        .password(email: email, password: { try password.current() })
      }
    return SupabaseSession(
      source: source, server: url, publishableKey: publishableKey.value, http: http, clock: clock,
      stateFile: stateFile, log: log)
  }

  /// Where the gateway keeps refresh tokens: beside the database, readable by its owner only.
  public var sessionFile: String { database + "-kizuna.session" }
}
