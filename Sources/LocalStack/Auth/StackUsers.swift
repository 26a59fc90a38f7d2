import HostKit

/// A user of the development server.
public struct StackUser: Sendable, Hashable {
  /// A uuid derived from the email address, so that it stays the same from start to start.
  public let id: String
  public let email: String

  package init(id: String, email: String) {
    self.id = id
    self.email = email
  }

  package init(email: String) {
    self.email = email.lowercased()
    var bytes = Array(Digest.sha256(Array("kizuna-localstack:\(self.email)".utf8)).prefix(16))
    bytes[6] = bytes[6] & 0x0F | 0x80  // version 8: a layout of one's own
    bytes[8] = bytes[8] & 0x3F | 0x80
    id = UUIDText.text(bytes)
  }

  /// As the auth service shows a user.
  var json: JSONValue {
    let created: JSONValue = "2026-01-01T00:00:00.000Z"
    return [
      "id": .string(id), "aud": "authenticated", "role": "authenticated", "email": .string(email), "phone": "",
      "email_confirmed_at": created, "confirmed_at": created, "created_at": created, "updated_at": created,
      "app_metadata": ["provider": "email", "providers": ["email"]], "user_metadata": [:], "identities": [],
      "is_anonymous": false,
    ]
  }
}

/// Who may sign in, with their passwords stretched.
struct StackUsers: Sendable {
  private struct Entry {
    let user: StackUser
    let salt: [UInt8]
    let secret: [UInt8]
  }

  private static let rounds: Int32 = 10_000
  private let entries: [String: Entry]
  private let byID: [String: StackUser]

  init(_ configured: [LocalStackConfiguration.User]) {
    var entries: [String: Entry] = [:]
    for user in configured {
      let salt = Digest.random(16)
      let stretched = Digest.stretched(user.password, salt: salt, rounds: Self.rounds)
      entries[user.email.lowercased()] = Entry(user: StackUser(email: user.email), salt: salt, secret: stretched)
    }
    self.entries = entries
    byID = Dictionary(entries.values.map { ($0.user.id, $0.user) }, uniquingKeysWith: { first, _ in first })
  }

  var all: [StackUser] { entries.values.map(\.user).sorted { $0.email < $1.email } }

  func user(id: String) -> StackUser? { byID[id] }

  /// Nil when there is no such user or the password is another; both take the same time.
  func signIn(email: String, password: String) -> StackUser? {
    let entry = entries[email.lowercased()]
    let given = Digest.stretched(password, salt: entry?.salt ?? Digest.random(16), rounds: Self.rounds)
    guard let entry, Digest.areEqual(given, entry.secret) else { return nil }
    return entry.user
  }
}

package enum UUIDText {
  /// 16 bytes as 8-4-4-4-12 hex digits.
  static func text(_ bytes: [UInt8]) -> String {
    let hex = bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }
    return [hex[0..<4], hex[4..<6], hex[6..<8], hex[8..<10], hex[10..<16]].map { $0.joined() }.joined(separator: "-")
  }

  package static func random() -> String {
    var bytes = Digest.random(16)
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return text(bytes)
  }
}
