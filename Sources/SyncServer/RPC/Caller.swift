/// Who calls, as the verified token says.
public struct Caller: Sendable, Hashable {
  /// The token's `sub`; nil for an anonymous caller.
  public var subject: String?
  /// The database role: `authenticated` or `anon`.
  public var role: String

  public init(subject: String?, role: String = "authenticated") {
    self.subject = subject
    self.role = role
  }

  public static let anonymous = Caller(subject: nil, role: "anon")

  public static func user(_ subject: String) -> Caller { Caller(subject: subject) }
}
