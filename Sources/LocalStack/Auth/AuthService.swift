import HostKit

/// The part of Supabase's auth service that a client needs: sign-in by password, rotating refresh tokens, the user behind
/// a token, sign-out.
package struct AuthService: Sendable {
  package let store: any AuthStore
  private let tokens: StackTokens
  private let lifetime: Int64
  private let reuseInterval: Int64
  private let wallMilliseconds: @Sendable () -> Int64

  package init(
    configuration: LocalStackConfiguration, tokens: StackTokens, store: any AuthStore,
    wallMilliseconds: @escaping @Sendable () -> Int64
  ) {
    self.tokens = tokens
    self.store = store
    lifetime = configuration.accessTokenLifetime
    reuseInterval = configuration.refreshReuseInterval
    self.wallMilliseconds = wallMilliseconds
  }

  private var now: Int64 { wallMilliseconds() / 1000 }

  /// Answers a request below `/auth/v1/`.
  ///
  /// - Parameter path: what follows that.
  package func handle(_ request: StackRequest, path: String) async -> StackResponse {
    do {
      switch (request.method, path) {
      case ("POST", "token"): return try await token(request)
      case ("GET", "user"): return .json(try await signedIn(request).user.json)
      case ("POST", "logout"): return try await logout(request)
      case (_, "token"), (_, "user"), (_, "logout"): return StackResponse(status: 405)
      case ("GET", "health"): return .json(["name": "GoTrue", "description": "kizuna-localstack"])
      default: throw AuthError(404, "not_found", "no such endpoint")
      }
    } catch let error as AuthError {
      return error.response(to: request)
    } catch {
      return AuthError(500, "unexpected_failure", "the server could not keep the session").response(to: request)
    }
  }

  private func token(_ request: StackRequest) async throws -> StackResponse {
    guard let body = try? JSONValue(parsing: request.body), body.objectValue != nil else {
      throw AuthError(400, "bad_json", "Could not parse request body as JSON")
    }
    switch request.parameter("grant_type") {
    case "password":
      guard let email = body["email"]?.stringValue, let password = body["password"]?.stringValue else {
        throw AuthError(400, "validation_failed", "missing email or password")
      }
      guard let user = try await store.user(email: email, password: password) else {
        throw AuthError(400, "invalid_credentials", "Invalid login credentials")
      }
      let (session, text) = (UUIDText.random(), newToken())
      try await store.begin(session: session, of: user.id, token: text, now: now)
      return grant(user, session: session, refreshToken: text)
    case "refresh_token":
      return try await refresh(body["refresh_token"]?.stringValue ?? "")
    default: throw AuthError(400, "validation_failed", "unsupported_grant_type")
    }
  }

  private func refresh(_ text: String) async throws -> StackResponse {
    let outcome = try await store.refresh(text, newToken: newToken(), now: now, reuseInterval: reuseInterval)
    switch outcome {
    case .granted(let session, let user, let token):
      guard let user = try await store.user(id: user) else {
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

  private func logout(_ request: StackRequest) async throws -> StackResponse {
    let (user, session) = try await signedIn(request)
    switch request.parameter("scope") ?? "global" {
    case "local": if let session { try await store.end(.only(session), of: user.id) }
    case "others": try await store.end(.allBut(session), of: user.id)
    case "global": try await store.end(.all, of: user.id)
    default: throw AuthError(400, "validation_failed", "Unsupported logout scope")
    }
    return StackResponse(status: 204)
  }

  /// The user and session of the request's bearer token.
  private func signedIn(_ request: StackRequest) async throws -> (user: StackUser, session: String?) {
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
    guard let user = try await store.user(id: subject) else {
      throw AuthError(403, "user_not_found", "User from sub claim in JWT does not exist")
    }
    return (user, claims["session_id"]?.stringValue)
  }

  private func newToken() -> String { Base64.encode(Digest.random(16), .url) }
}
