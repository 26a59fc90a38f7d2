import HTTPClient
import HostKit

/// The request for a token and what its answer means. Pure.
///
/// Facts of Supabase Auth: `POST <base>/auth/v1/token?grant_type=password|refresh_token`; success is 200 with
/// `access_token`, `expires_in` and a new `refresh_token`; refusals are 400 (older servers also 401, 422) with
/// `error_code`, on older servers with `error` = `invalid_grant`.
enum TokenGrant: Sendable, Equatable {
  case granted(accessToken: String, refreshToken: Secret?, expiresIn: Int?)
  /// The credentials of this attempt are worth nothing any more.
  case refused(SessionFailure)
  /// Nothing was said about the credentials.
  case failed(SessionFailure)

  static func request(_ way: SessionMachine.Way, email: String, password: String, server: ServerURL, key: String)
    -> HTTPRequest
  {
    let grant: String
    let body: JSONValue
    switch way {
    case .refresh(let token): (grant, body) = ("refresh_token", ["refresh_token": .string(token.value)])
    case .signIn, .read: (grant, body) = ("password", ["email": .string(email), "password": .string(password)])
    }
    var headers = [HTTPHeader("Content-Type", "application/json"), HTTPHeader("Accept", "application/json")]
    if !key.isEmpty { headers.append(HTTPHeader("apikey", key)) }
    return HTTPRequest(
      method: "POST", url: server.http("/auth/v1/token?grant_type=\(grant)"), headers: headers,
      body: JSONWriter.data(body), maximumResponseBytes: 1 << 20)
  }

  init(_ response: HTTPResponse, way: SessionMachine.Way, host: String) {
    let body = try? JSONValue(parsing: response.body)
    switch response.status {
    case 200..<300:
      if body?.objectValue == nil {
        self = .failed(
          SessionFailure(
            .transient,
            "the sign-in at \(host) was answered with something that is not a JSON object, so another program answers at "
              + "this address; check url, or sign in to this network if it asks for that"))
      } else if let token = body?["access_token"]?.stringValue, !token.isEmpty,
        let wrong = SecretText.problem(token, .token)
      {
        // In a header it would end the header; no request could be made with it.
        self = .failed(
          SessionFailure(
            .authentication,
            "\(host) answered the sign-in with an access token that cannot be used: it \(wrong); check the auth service there"
          ))
      } else if let token = body?["access_token"]?.stringValue, !token.isEmpty {
        self = .granted(
          accessToken: token, refreshToken: body?["refresh_token"]?.stringValue.map(Secret.init),
          expiresIn: body?["expires_in"]?.intValue)
      } else {
        self = .failed(SessionFailure(.transient, "\(host) answered the sign-in without an access token"))
      }
    case 300..<400:
      self = .failed(
        SessionFailure(.configuration, "\(host) redirects the sign-in elsewhere; give the server's own address"))
    case 404, 405:
      self = .failed(
        SessionFailure(
          .configuration,
          "there is no sign-in service at \(host) (status \(response.status)); check url, which is the project's address without a path of a service"
        ))
    case 408, 409, 425, 429, 500...:
      self = .failed(
        SessionFailure(
          .transient, "\(host) cannot sign in at the moment (status \(response.status))",
          retryAfter: Self.retryAfter(response)))
    default:
      self = Self.refusal(response.status, code: Self.code(body), way: way, host: host)
    }
  }

  /// Of a life in seconds; nil when it makes no sense.
  static func nanoseconds(_ expiresIn: Int?) -> UInt64? {
    expiresIn.flatMap { $0 > 0 ? UInt64($0).multipliedClamped(by: 1_000_000_000) : nil }
  }

  /// Codes that are about the credentials given, not about the request or the key.
  private static let refusals: Set<String> = [
    "invalid_grant", "invalid_credentials", "refresh_token_not_found", "refresh_token_already_used",
    "session_not_found",
    "session_expired", "user_not_found", "user_banned", "email_not_confirmed", "validation_failed",
  ]

  private static func refusal(_ status: Int, code: String?, way: SessionMachine.Way, host: String) -> TokenGrant {
    let detail = code ?? "status \(status)"
    guard let code, refusals.contains(code) else {
      return .failed(
        SessionFailure(.authentication, "\(host) refused the sign-in (\(detail)); check the publishable key"))
    }
    let sentence =
      switch (code, way) {
      case ("user_banned", _): "\(host) has banned the user (\(detail)); lift the ban there, or sign in as another user"
      case ("email_not_confirmed", _):
        "the user's e-mail address is not confirmed (\(detail)); confirm it by the link that was sent to it"
      case (_, .refresh): "\(host) refused the refresh token (\(detail)); sign in again"
      default:
        "\(host) refused the e-mail address or the password (\(detail)); check both, and that the user exists there"
      }
    return .refused(SessionFailure(.authentication, sentence))
  }

  /// The server's word for the error, when it is a word: anything else could hold what must not be shown.
  private static func code(_ body: JSONValue?) -> String? {
    for name in ["error_code", "code", "error"] {
      if let code = body?[name]?.stringValue, !code.isEmpty, code.utf8.count <= 40,
        code.utf8.allSatisfy({ $0 == UInt8(ascii: "_") || $0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z") })
      {
        return code
      }
    }
    return nil
  }

  private static func retryAfter(_ response: HTTPResponse) -> UInt64? {
    let now = response.serverDate ?? SystemClock.shared.wallMilliseconds
    guard let seconds = response.header("retry-after").flatMap({ RetryAfter.seconds($0, now: now) }), seconds <= 86_400
    else { return nil }
    return UInt64(seconds) * 1_000_000_000
  }

  /// The failure for an exchange that brought no answer.
  static func failure(_ error: HTTPError) -> SessionFailure {
    SessionFailure(error.kind == .invalidURL ? .configuration : .transient, error.message)
  }
}
