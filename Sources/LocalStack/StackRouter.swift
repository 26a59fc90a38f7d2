import HostKit
import SyncServer

/// Sends each request of the development server to the service that answers it.
public struct StackRouter: StackHandler {
  let services: LocalStackServices
  private let gate: APIKeyGate
  /// Answers what lies below `/realtime/v1/api/`.
  let realtime: (any StackHandler)?

  /// - Parameter realtime: answers requests below `/realtime/v1/api/`, with the path as it came; nil answers 404.
  public init(_ services: LocalStackServices, realtime: (any StackHandler)? = nil) {
    self.services = services
    gate = APIKeyGate(tokens: services.tokens, requiresKey: services.configuration.requiresAPIKey)
    self.realtime = realtime
  }

  public func handle(_ request: StackRequest) async -> StackResponse {
    if let rest = suffix(of: request.path, after: "/_localstack/") { return await own(request, rest) }
    if let rest = suffix(of: request.path, after: "/rest/v1/rpc/") {
      if let refusal = gate.refusal(of: request, now: services.now) { return refusal }
      return await services.rpc.handle(request, function: rest)
    }
    if let rest = suffix(of: request.path, after: "/auth/v1/") {
      if let refusal = gate.refusal(of: request, now: services.now) { return refusal }
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
