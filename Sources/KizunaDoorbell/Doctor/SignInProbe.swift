import HostKit
import SupabaseSession

/// Gets an access token as the configuration says. A password is used for a sign-in of its own: the refresh tokens beside
/// the database belong to the process that holds its lock.
struct SignInProbe: Sendable {
  private let configuration: GatewayConfiguration
  private let parts: GatewayParts
  private let log: HostLog

  init(_ configuration: GatewayConfiguration, parts: GatewayParts, log: HostLog) {
    (self.configuration, self.parts, self.log) = (configuration, parts, log)
  }

  func run() async -> (finding: Finding, token: String?) {
    if case .accessToken(let secret) = configuration.session { return given(secret) }
    let session = configuration.makeSession(http: parts.http, stateFile: nil, clock: parts.clock, log: log)
    let result: (finding: Finding, token: String?)
    do {
      let token = try await session.accessToken()
      result = (.ok(.signIn, "the server takes the e-mail address and the password"), token.value)
    } catch {
      let failure = error as? SessionFailure ?? SessionFailure(.transient, "the sign-in was interrupted")
      result = (Self.finding(failure), nil)
    }
    await session.stop()
    return result
  }

  private func given(_ secret: ConfigurationSecret) -> (finding: Finding, token: String?) {
    do throws(ConfigurationSecretError) {
      let token = try secret.current()
      return (.ok(.signIn, "an access token is given, so nobody is asked for one"), token)
    } catch {
      return (
        .failed(.signIn, .configuration, sentence: error.message, otherwise: "give the file one access token"), nil
      )
    }
  }

  static func finding(_ failure: SessionFailure) -> Finding {
    let remedy =
      switch failure.kind {
      case .authentication: "check the e-mail address and the password, and that the user exists on this server"
      case .configuration: "check url and the session in the configuration"
      case .transient, .stopped: "try again; a gateway does so by itself"
      }
    return .failed(.signIn, failure.exitCode, sentence: failure.message, otherwise: remedy)
  }
}
