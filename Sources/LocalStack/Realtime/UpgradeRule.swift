import HostKit
import PhoenixChannels

/// Decides about the upgrade to a Realtime socket (Realtime wire contract §1).
struct UpgradeRule {
  var settings: RealtimeSettings
  var verifier: any TokenVerifier

  static let paths: Set<String> = ["/realtime/v1/websocket", "/socket/websocket"]

  struct Accepted: Equatable {
    var version: PhoenixVersion
    var token: AcceptedToken
  }

  enum Verdict: Equatable {
    case accepted(Accepted)
    case refused(StackResponse, after: UInt64)
  }

  func verdict(_ request: StackRequest, openSockets: Int, wallMilliseconds: Int64) -> Verdict {
    let query = Self.parameters(request.query)
    guard let version = Self.version(query["vsn"]) else {
      return .refused(StackResponse(status: 403), after: 0)
    }
    guard let key = request.header("x-api-key") ?? query["apikey"], !key.isEmpty else {
      return refuse(401, "API key is missing")
    }
    let token: AcceptedToken
    if key.hasPrefix("sb_publishable_") {
      // A hosted gateway swaps such a key for an anonymous token that does not expire.
      token = AcceptedToken(text: key, claims: ["role": "anon"], expiresAt: .infinity)
    } else {
      do throws(TokenRefusal) {
        token = try AcceptedToken.check(key, with: verifier, wallMilliseconds: wallMilliseconds)
      } catch {
        return refuse(401, error.upgradeText)
      }
    }
    guard openSockets < settings.maximumSockets else { return refuse(429, "Too many connected users") }
    return .accepted(Accepted(version: version, token: token))
  }

  private func refuse(_ status: Int, _ text: String) -> Verdict {
    .refused(.json(["error": .string(text)], status: status), after: settings.connectErrorBackoff)
  }

  private static func version(_ text: String?) -> PhoenixVersion? {
    guard let text else { return .v1 }
    if text.hasPrefix("1.0.") { return .v1 }
    return text.hasPrefix("2.0.") ? .v2 : nil
  }

  static func parameters(_ query: String) -> [String: String] {
    var result: [String: String] = [:]
    for pair in query.split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      result[PercentCoding.decode(parts[0])] = PercentCoding.decode(parts.count > 1 ? parts[1] : "")
    }
    return result
  }
}
