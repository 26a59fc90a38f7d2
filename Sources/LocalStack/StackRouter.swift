import HostKit
import SyncServer

/// Sends each request of the development server to the service that answers it.
public struct StackRouter: StackHandler {
  let services: LocalStackServices
  /// Answers what lies below `/realtime/v1/api/`.
  let realtime: (any StackHandler)?

  /// - Parameter realtime: answers requests below `/realtime/v1/api/`, with the path as it came; nil answers 404.
  public init(_ services: LocalStackServices, realtime: (any StackHandler)? = nil) {
    self.services = services
    self.realtime = realtime
  }

  public func handle(_ request: StackRequest) async -> StackResponse {
    if let rest = suffix(of: request.path, after: "/_localstack/") { return await own(request, rest) }
    if let rest = suffix(of: request.path, after: "/rest/v1/rpc/") {
      if let refusal = gate(request) { return refusal }
      return await services.rpc.handle(request, function: rest)
    }
    if let rest = suffix(of: request.path, after: "/auth/v1/") {
      if let refusal = gate(request) { return refusal }
      return await services.auth.handle(request, path: rest)
    }
    if let realtime, request.path.hasPrefix("/realtime/v1/api/") { return await realtime.handle(request) }
    return .json(["message": "no Route matched with those values"], status: 404)
  }

  private func suffix(of path: String, after prefix: String) -> String? {
    guard path.hasPrefix(prefix) else { return nil }
    let rest = path.dropFirst(prefix.count)
    return String(rest.hasSuffix("/") ? rest.dropLast() : rest)
  }

  /// What the gateway in front of the hosted services answers by itself: requests without a key, or with a wrong one.
  private func gate(_ request: StackRequest) -> StackResponse? {
    guard services.configuration.requiresAPIKey else { return nil }
    guard let key = request.header("apikey") ?? request.parameter("apikey") else {
      return .json(
        [
          "message": "No API key found in request",
          "hint": "No `apikey` request header or url param was found.",
        ], status: 401)
    }
    if services.tokens.accepts(apiKey: key, now: services.now) { return nil }
    return .json(
      [
        "message": "Invalid API key", "hint": "Use the publishableKey that kizuna-localstack printed when it started.",
      ], status: 401)
  }

  private func own(_ request: StackRequest, _ rest: String) async -> StackResponse {
    guard request.method == "GET" else { return StackResponse(status: 405) }
    switch rest {
    case "health": return .json(["ok": true])
    case "commits":
      let after = request.parameter("after").flatMap { Int64($0) } ?? 0
      let commits = await services.server.commitTimes(after: after).map { seq, at -> JSONValue in
        ["seq": .string(String(seq)), "monotonic_ns": .int(Int64(at))]
      }
      return .json(["commits": .array(commits)])
    default: return .json(["message": "no such page"], status: 404)
    }
  }
}
