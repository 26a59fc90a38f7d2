import HostKit

/// A user's access token. It shows only what is not secret: whose it is stays out of descriptions too.
public struct AccessToken: Sendable, Hashable {
  /// The token itself, as it goes into `Authorization: Bearer …` and into a channel join.
  public let value: String
  /// The user: claim `sub`.
  public let subject: String?
  /// The database role the token runs as: claim `role`.
  public let role: String?
  /// When it ends and when it is to be replaced, on the scale of `HostClock.now`; `UInt64.max` for never.
  public let expiresAt: UInt64
  public let refreshAt: UInt64
  /// Claim `exp`, milliseconds since 1970 by the issuer's clock.
  let expiryDate: Int64?

  /// A token is replaced this long before it expires, a short-lived one after half of its life.
  static let margin: UInt64 = .seconds(60)

  /// - Parameters:
  ///   - receivedAt: `HostClock.now` when it came.
  ///   - remaining: nanoseconds it has left then; nil for a token that does not expire.
  init(value: String, claims: UnverifiedToken?, receivedAt: UInt64, remaining: UInt64?) {
    self.value = value
    subject = claims?.subject
    role = claims?.role
    expiryDate = claims?.expiresAt.map { $0.multipliedClamped(by: 1000) }
    expiresAt = remaining.map { receivedAt.addingClamped($0) } ?? .max
    // One that never ends is never replaced.
    refreshAt =
      remaining.map { left in
        let end = receivedAt.addingClamped(left)
        return end == .max ? .max : end - min(Self.margin, left / 2)
      } ?? .max
  }
}

extension AccessToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "AccessToken(…)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Text that must not show: refresh tokens and passwords.
struct Secret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  let value: String

  init(_ value: String) {
    self.value = value
  }

  var description: String { "…" }
  var debugDescription: String { description }
  var customMirror: Mirror { Mirror(self, children: []) }
}
