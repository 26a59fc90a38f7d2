import HostKit

/// Where the auth service keeps users, sessions and refresh tokens.
package protocol AuthStore: Sendable {
  /// Nil when there is no such user or the password is another; both take the same time.
  func user(email: String, password: String) async throws -> StackUser?
  func user(id: String) async throws -> StackUser?
  /// Remembers a new session and its first refresh token.
  ///
  /// - Parameter now: seconds since 1970.
  func begin(session: String, of user: String, token: String, now: Int64) async throws
  /// Replaces a refresh token.
  ///
  /// - Parameters:
  ///   - newToken: used when a new token is called for.
  ///   - now: seconds since 1970.
  ///   - reuseInterval: seconds in which a token may be used a second time.
  func refresh(_ token: String, newToken: String, now: Int64, reuseInterval: Int64) async throws -> AuthState.Refresh
  /// Forgets sessions of a user, with their tokens.
  func end(_ sessions: AuthEnding, of user: String) async throws
}

/// Which sessions a sign-out ends.
package enum AuthEnding: Sendable, Hashable {
  case only(String)
  case allBut(String?)
  case all
}
