import Foundation

/// The few names of supabase-swift that the example code uses, with a sign-in and a bell that tests work by hand.
public final class SupabaseClient: Sendable {
  public let auth = AuthClient()
  public let realtimeV2 = RealtimeClientV2()

  public init(supabaseURL: URL, supabaseKey: String) {}
}

public struct Session: Sendable {
  public let accessToken: String
}

public struct SignedOut: Error {}

public final class AuthClient: Sendable {
  private let token = Guarded<String?>(nil)

  public var session: Session {
    get async throws {
      guard let token = token.withLock({ $0 }) else { throw SignedOut() }
      return Session(accessToken: token)
    }
  }

  /// For tests: signs in with a token of their own making; nil signs out.
  public func use(token: String?) {
    self.token.withLock { $0 = token }
  }
}
