import HostKit
import PhoenixChannels
import Testing

@testable import LocalStack

@Suite struct UpgradeRuleTests {
  private let rule = UpgradeRule(settings: RealtimeSettings(), verifier: PlainVerifier())
  private static let wall: Int64 = 1_900_000_000_000

  private func verdict(query: String, headers: [StackHeader] = [], openSockets: Int = 0) -> UpgradeRule.Verdict {
    rule.verdict(
      StackRequest(method: "GET", path: "/socket/websocket", query: query, headers: headers), openSockets: openSockets,
      wallMilliseconds: Self.wall)
  }

  private static let key = PercentCoding.encode(PlainVerifier.token(role: "anon"))

  @Test(arguments: [
    ("", PhoenixVersion.v1), ("&vsn=1.0.0", .v1), ("&vsn=1.0.7", .v1), ("&vsn=2.0.0", .v2), ("&vsn=2.0.1", .v2),
  ])
  func aGoodKeyOpensASocketOfTheVersion(vsn: String, version: PhoenixVersion) {
    guard case .accepted(let accepted) = verdict(query: "apikey=\(Self.key)\(vsn)") else {
      Issue.record("refused")
      return
    }
    #expect(accepted.version == version)
    #expect(accepted.token.role == "anon")
  }

  @Test func anotherVersionIsRefusedAtOnceWithoutText() {
    #expect(verdict(query: "apikey=\(Self.key)&vsn=3.0.0") == .refused(StackResponse(status: 403), after: 0))
  }

  @Test(arguments: [
    ("", 401, "API key is missing"), ("apikey=garbage", 401, "The token provided is not a valid JWT"),
    ("apikey=forged", 401, "Failed to validate JWT signature"),
    ("apikey=" + PercentCoding.encode(PlainVerifier.token(exp: 1_899_999_999)), 401, "Token has expired"),
    (
      "apikey=" + PercentCoding.encode(PlainVerifier.token(role: nil)), 401,
      "Fields `role` and `exp` are required in JWT"
    ),
    (
      "apikey=" + PercentCoding.encode(PlainVerifier.token(exp: nil)), 401,
      "Fields `role` and `exp` are required in JWT"
    ),
  ])
  func aBadKeyIsRefusedAfterTwoSeconds(query: String, status: Int, text: String) {
    #expect(
      verdict(query: query) == .refused(.json(["error": .string(text)], status: status), after: .seconds(2)))
  }

  @Test func theHeaderWinsOverTheQuery() {
    let headers = [StackHeader("X-Api-Key", PlainVerifier.token(role: "service_role"))]
    guard case .accepted(let accepted) = verdict(query: "apikey=garbage", headers: headers) else {
      Issue.record("refused")
      return
    }
    #expect(accepted.token.role == "service_role")
  }

  @Test func aPublishableKeyCountsAsAnonymous() {
    guard case .accepted(let accepted) = verdict(query: "apikey=sb_publishable_x") else {
      Issue.record("refused")
      return
    }
    #expect(accepted.token.role == "anon")
  }

  @Test func tooManySocketsAreRefused() {
    #expect(
      verdict(query: "apikey=\(Self.key)", openSockets: 200)
        == .refused(.json(["error": "Too many connected users"], status: 429), after: .seconds(2)))
  }
}
