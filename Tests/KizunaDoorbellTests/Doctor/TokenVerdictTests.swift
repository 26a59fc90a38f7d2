import HostKit
import Testing

@testable import KizunaDoorbell

@Suite struct TokenVerdictTests {
  private static let now: Int64 = 1_800_000_000
  private static let user = "11111111-1111-4111-8111-111111111111"
  private static let good: [String: JSONValue] = [
    "role": "authenticated", "sub": .string(user), "iat": .int(now - 60), "exp": .int(now + 3600),
    "iss": "https://abc.supabase.co/auth/v1",
  ]

  private static func token(_ claims: [String: JSONValue]) -> String {
    let parts = [["alg": "HS256"], JSONValue.object(claims)].map { Base64.encode(JSONWriter.data($0), .url) }
    return parts.joined(separator: ".") + ".c2lnbmF0dXJl"
  }

  private func finding(
    _ changes: [String: JSONValue?], isKey: Bool = false, owner: String? = nil, text: String? = nil
  ) throws -> Finding {
    let claims = Self.good.merging(changes.mapValues { $0 ?? .null }) { $1 }.filter { !$0.value.isNull }
    let verdict = TokenVerdict(
      claims: UnverifiedToken(text ?? Self.token(claims)), isKey: isKey,
      server: try ServerURL("https://abc.supabase.co"), now: Self.now * 1000, owner: owner)
    return verdict.finding
  }

  private static let wrong: [([String: JSONValue?], Finding.Status, ExitCode, String)] = [
    ([:], .ok, .ok, "3600 s"),
    (["role": "anon"], .failed, .authentication, "anon"),
    (["role": "service_role"], .failed, .configuration, "service_role"),
    (["role": "postgres"], .failed, .authentication, "another role"),
    (["role": nil], .failed, .authentication, "no role"),
    (["sub": nil], .failed, .authentication, "sub"),
    (["sub": ""], .failed, .authentication, "sub"),
    (["exp": nil], .failed, .authentication, "exp"),
    (["exp": .int(now)], .failed, .authentication, "ended 0 s ago"),
    (["exp": .int(now - 5)], .failed, .authentication, "ended 5 s ago"),
    (["exp": .int(now + 59)], .warning, .ok, "59 s only"),
    (["exp": .int(now + 60)], .ok, .ok, "60 s"),
    (["iat": .int(now + 31)], .warning, .ok, "future"),
    (["iat": .int(now + 30)], .ok, .ok, "good for"),
    (["iss": "https://xyz.supabase.co/auth/v1"], .warning, .ok, "xyz.supabase.co"),
    (["iss": "supabase"], .ok, .ok, "good for"),
    (["exp": .int(Int64.max)], .ok, .ok, "good for"),
    (["exp": .int(Int64.min)], .failed, .authentication, "ended"),
  ]

  @Test(arguments: wrong)
  func claims(changes: [String: JSONValue?], status: Finding.Status, exit: ExitCode, words: String) throws {
    let finding = try finding(changes)
    #expect(finding.status == status, "\(finding)")
    #expect(finding.exitCode == exit)
    #expect(finding.text.contains(words), "\(finding.text)")
    #expect((finding.remedy != nil) == (status != .ok))
    #expect(!finding.text.contains(Self.user))
  }

  @Test func otherTexts() throws {
    #expect(try finding([:], isKey: true).text.contains("publishable key"))
    #expect(try finding([:], text: "sb_publishable_x").text.contains("no JSON web token"))
    #expect(try finding([:], owner: Self.user).status == .ok)
    let other = try finding([:], owner: "22222222-2222-4222-8222-222222222222")
    #expect(other.status == .failed && other.exitCode == .configuration && !other.text.contains("2222"))
  }

  private static let keys: [(String, Int?, Finding.Status, ExitCode, String)] = [
    ("sb_publishable_abc", 200, .ok, .ok, "takes"), ("sb_publishable_abc", 404, .ok, .ok, "takes"),
    ("sb_publishable_abc", 401, .failed, .authentication, "HTTP 401"),
    ("sb_publishable_abc", nil, .skipped, .ok, "did not answer"),
    ("sb_secret_abc", 200, .failed, .configuration, "secret key"),
    (token(["role": "anon", "ref": "abc", "exp": .int(now + 1)]), 200, .ok, .ok, "takes"),
    (token(["role": "anon", "ref": "abc", "exp": .int(now)]), 200, .failed, .authentication, "ended"),
    (token(["role": "anon", "ref": "xyz"]), 200, .failed, .configuration, "another project"),
    (token(["role": "service_role", "ref": "abc"]), 200, .failed, .configuration, "secret key"),
    (token(good), 200, .failed, .configuration, "user's token"),
  ]

  @Test(arguments: keys)
  func whatAKeyIs(key: String, answer: Int?, status: Finding.Status, exit: ExitCode, words: String) throws {
    let finding = KeyVerdict.finding(
      key, server: try ServerURL("https://abc.supabase.co"), status: answer, now: Self.now * 1000)
    #expect(finding.status == status && finding.exitCode == exit, "\(finding)")
    #expect(finding.text.contains(words), "\(finding.text)")
    #expect(!finding.text.contains("abc") && !finding.text.contains("eyJ"))
  }

  @Test func aKeyOfAServerUnderItsOwnName() throws {
    let key = Self.token(["role": "anon", "ref": "xyz"])
    let own = KeyVerdict.finding(key, server: try ServerURL("https://sync.example.com"), status: 200, now: 0)
    #expect(own.status == .ok)
  }
}
