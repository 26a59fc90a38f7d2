import HostKit
import PhoenixChannels

/// Broadcasts by HTTP (Realtime wire contract §14): many at once, or one to a topic.
struct HTTPBroadcast: Sendable {
  let hub: RealtimeHub

  private static let prefixes = ["/realtime/v1/api/broadcast", "/api/broadcast"]

  /// - Returns: nil when the request is not for it.
  func answer(_ request: StackRequest) async -> StackResponse? {
    guard let prefix = Self.prefixes.first(where: { request.path.hasPrefix($0) }) else { return nil }
    let rest = request.path.dropFirst(prefix.count)
    guard rest.isEmpty || rest.hasPrefix("/") else { return nil }
    guard request.method == "POST" else { return StackResponse(status: 404) }
    guard let claims = await claims(of: request) else {
      return .json(["message": "Unauthorized"], status: 401)
    }
    if rest.isEmpty || rest == "/" { return await batch(request, claims) }
    let parts = rest.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[1] == "events", !parts[0].isEmpty else { return StackResponse(status: 404) }
    return await single(
      request, topic: PercentCoding.decode(parts[0]), event: PercentCoding.decode(parts[2]), claims)
  }

  private func claims(of request: StackRequest) async -> JSONValue? {
    if let authorization = request.header("authorization") {
      let words = authorization.split(separator: " ")
      guard words.count == 2, words[0].lowercased() == "bearer" else { return nil }
      return await hub.claims(of: String(words[1]))
    }
    guard let key = request.header("apikey") else { return nil }
    return await hub.claims(of: key)
  }

  // MARK: Many

  private func batch(_ request: StackRequest, _ claims: JSONValue) async -> StackResponse {
    guard let body = try? JSONValue(parsing: request.body) else {
      return StackResponse(
        status: 400, headers: [StackHeader("content-type", "text/html; charset=utf-8")], body: Array("Bad Request".utf8)
      )
    }
    guard let messages = body["messages"]?.arrayValue, !messages.isEmpty else {
      return .json(["errors": ["messages": ["can't be blank"]]], status: 422)
    }
    let problems = messages.map(Self.problems)
    guard problems.allSatisfy(\.isEmpty) else {
      return .json(["errors": ["messages": .array(problems.map(JSONValue.object))]], status: 422)
    }
    for message in messages {
      guard let topic = message["topic"]?.stringValue, let event = message["event"]?.stringValue else { continue }
      let isPrivate = message["private"]?.boolValue ?? false
      // What the token may not write is left out, and the answer is the same.
      if isPrivate, await !hub.mayWrite(topic, claims) { continue }
      var payload: [String: JSONValue] = [
        "type": "broadcast", "event": .string(event), "payload": message["payload"] ?? [:],
      ]
      if let id = message["id"]?.stringValue { payload["meta"] = ["id": .string(id)] }
      await hub.publish(
        RealtimeBroadcast(room: RealtimeRoom(topic: topic, isPrivate: isPrivate), content: .text(.object(payload))))
    }
    return StackResponse(status: 202)
  }

  private static func problems(_ message: JSONValue) -> [String: JSONValue] {
    var problems: [String: JSONValue] = [:]
    for name in ["topic", "event"] where message[name]?.stringValue?.isEmpty ?? true {
      problems[name] = ["can't be blank"]
    }
    switch message["payload"] {
    case nil, .null?: problems["payload"] = ["can't be blank"]
    case .object?: break
    default: problems["payload"] = ["is invalid"]
    }
    return problems
  }

  // MARK: One

  private func single(
    _ request: StackRequest, topic: String, event: String, _ claims: JSONValue
  ) async -> StackResponse {
    let isPrivate = UpgradeRule.parameters(request.query)["private"] == "true"
    if isPrivate, await !hub.mayWrite(topic, claims) {
      return .json(["message": "Unauthorized"], status: 403)
    }
    guard request.body.count <= (await hub.maximumPayloadBytes) else {
      return .json(["errors": ["payload": ["Payload size exceeds tenant limit"]]], status: 422)
    }
    let content: UserBroadcast.Content
    switch request.header("content-type")?.prefix(while: { $0 != ";" }).lowercased() {
    case "application/octet-stream": content = .bytes(request.body)
    case "application/json":
      guard let value = try? JSONValue(parsing: request.body) else { return StackResponse(status: 400) }
      content = .json(value)
    default: return .json(["error": "Unsupported Media Type"], status: 415)
    }
    await hub.publish(
      RealtimeBroadcast(
        room: RealtimeRoom(topic: topic, isPrivate: isPrivate),
        content: .binary(UserBroadcast(event: event, content: content))))
    return StackResponse(status: 202)
  }
}
