import HostKit

/// The part of Supabase's auth service that a client needs: sign-in by password, rotating refresh tokens, the user behind
/// a token, sign-out.
public actor AuthService {
  private let thread: SerialThread
  private let tokens: StackTokens
  private let users: StackUsers
  private let lifetime: Int64
  private let reuseInterval: Int64
  private let wallMilliseconds: @Sendable () -> Int64
  private let journal: @Sendable ([AuthChange]) throws -> Void
  private var state: AuthState

  public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  /// - Parameter journal: writes changes down before they take effect.
  init(
    configuration: LocalStackConfiguration, tokens: StackTokens, users: StackUsers, state: AuthState,
    thread: SerialThread, wallMilliseconds: @escaping @Sendable () -> Int64,
    journal: @escaping @Sendable ([AuthChange]) throws -> Void
  ) {
    self.thread = thread
    self.tokens = tokens
    self.users = users
    lifetime = configuration.accessTokenLifetime
    reuseInterval = configuration.refreshReuseInterval
    self.wallMilliseconds = wallMilliseconds
    self.journal = journal
    self.state = state
  }

  /// What the service remembers, for a snapshot.
  var changes: [AuthChange] { state.changes }

  private var now: Int64 { wallMilliseconds() / 1000 }

  /// Answers a request below `/auth/v1/`.
  ///
  /// - Parameter path: what follows that.
  func handle(_ request: StackRequest, path: String) -> StackResponse {
    do {
      switch (request.method, path) {
      case ("POST", "token"): return try token(request)
      case ("GET", "user"): return .json(try signedIn(request).user.json)
      case ("POST", "logout"): return try logout(request)
      case (_, "token"), (_, "user"), (_, "logout"): return StackResponse(status: 405)
      case ("GET", "health"): return .json(["name": "GoTrue", "description": "kizuna-localstack"])
      default: throw AuthError(404, "not_found", "no such endpoint")
      }
    } catch let error as AuthError {
      return error.response(to: request)
    } catch {
      return AuthError(500, "unexpected_failure", "the server could not write its journal").response(to: request)
    }
  }

  private func token(_ request: StackRequest) throws -> StackResponse {
    guard let body = try? JSONValue(parsing: request.body), body.objectValue != nil else {
      throw AuthError(400, "bad_json", "Could not parse request body as JSON")
    }
    switch request.parameter("grant_type") {
    case "password":
      guard let email = body["email"]?.stringValue, let password = body["password"]?.stringValue else {
        throw AuthError(400, "validation_failed", "missing email or password")
      }
      guard let user = users.signIn(email: email, password: password) else {
        throw AuthError(400, "invalid_credentials", "Invalid login credentials")
      }
      let (session, text) = (UUIDText.random(), newToken())
      try commit([
        .session(id: session, user: user.id), .token(text, RefreshToken(session: session, changedAt: now)),
      ])
      return grant(user, session: session, refreshToken: text)
    case "refresh_token":
      return try refresh(body["refresh_token"]?.stringValue ?? "")
    default: throw AuthError(400, "validation_failed", "unsupported_grant_type")
    }
  }

  private func refresh(_ text: String) throws -> StackResponse {
    let (outcome, changes) = state.refresh(text, newToken: newToken(), now: now, reuseInterval: reuseInterval)
    try commit(changes)
    switch outcome {
    case .granted(let session, let user, let token):
      guard let user = users.user(id: user) else {
        throw AuthError(403, "user_not_found", "User from sub claim in JWT does not exist")
      }
      return grant(user, session: session, refreshToken: token)
    case .unknown:
      throw AuthError(400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found")
    case .reused: throw AuthError(400, "refresh_token_already_used", "Invalid Refresh Token: Already Used")
    }
  }

  private func grant(_ user: StackUser, session: String, refreshToken: String) -> StackResponse {
    let now = now
    let token = tokens.accessToken(
      subject: user.id, email: user.email, session: session, now: now, lifetime: lifetime)
    return .json([
      "access_token": .string(token), "token_type": "bearer", "expires_in": .int(lifetime),
      "expires_at": .int(now + lifetime), "refresh_token": .string(refreshToken), "user": user.json,
    ])
  }

  private func logout(_ request: StackRequest) throws -> StackResponse {
    let (user, session) = try signedIn(request)
    let ended: [String]
    switch request.parameter("scope") ?? "global" {
    case "local": ended = [session].compactMap { $0 }
    case "others": ended = state.sessions.filter { $0.value == user.id && $0.key != session }.map(\.key)
    case "global": ended = state.sessions.filter { $0.value == user.id }.map(\.key)
    default: throw AuthError(400, "validation_failed", "Unsupported logout scope")
    }
    try commit(ended.sorted().map { .ended(session: $0) })
    return StackResponse(status: 204)
  }

  /// The user and session of the request's bearer token.
  private func signedIn(_ request: StackRequest) throws -> (user: StackUser, session: String?) {
    guard let bearer = request.bearerToken else {
      throw AuthError(401, "no_authorization", "This endpoint requires a valid Bearer token")
    }
    func bad(_ what: String) -> AuthError { AuthError(403, "bad_jwt", "invalid JWT: " + what) }
    let claims: [String: JSONValue]
    do throws(StackTokens.Refusal) {
      claims = try tokens.verify(bearer, now: now)
    } catch {
      switch error {
      case .expired: throw bad("unable to parse or verify signature, token has invalid claims: token is expired")
      case .badSignature: throw bad("unable to parse or verify signature, token signature is invalid")
      case .malformed, .badClaims: throw bad("unable to parse or verify signature, token is malformed")
      }
    }
    guard let subject = claims["sub"]?.stringValue else { throw bad("missing sub claim") }
    guard let user = users.user(id: subject) else {
      throw AuthError(403, "user_not_found", "User from sub claim in JWT does not exist")
    }
    return (user, claims["session_id"]?.stringValue)
  }

  private func newToken() -> String { Base64.encode(Digest.random(16), .url) }

  private func commit(_ changes: [AuthChange]) throws {
    guard !changes.isEmpty else { return }
    try journal(changes)
    for change in changes { state.apply(change) }
  }
}
