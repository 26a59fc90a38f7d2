/// Where a connection gets the access tokens of its joins.
///
/// New tokens are pushed with `RealtimeConnection.setAccessToken(_:)`; this port answers when the connection asks.
public protocol RealtimeCredentials: Sendable {
  /// The newest access token. Called off the transport's thread, one call at a time.
  ///
  /// It must come back: joins wait for it.
  /// - Parameter refresh: the server refused the newest one; get another.
  /// - Returns: nil when nobody is signed in. The connection then closes until a token is pushed.
  /// - Throws: anything when it cannot be found out now; the connection asks again later.
  func accessToken(refresh: Bool) async throws -> String?
}
