import SupabaseRealtime
import SupabaseSession

/// Answers a Realtime connection that asks for a token out of the shared session, so that HTTP and channels never hold
/// tokens of two sign-ins.
public struct SessionCredentials: RealtimeCredentials {
  private let session: SupabaseSession

  public init(_ session: SupabaseSession) {
    self.session = session
  }

  public func accessToken(refresh: Bool) async throws -> String? {
    do {
      return try await session.accessToken(refresh: refresh).value
    } catch let failure as SessionFailure where failure.kind == .authentication {
      // Nobody is signed in; a new token is pushed when somebody is.
      return nil
    }
  }
}
