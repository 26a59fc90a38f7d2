import HTTPClient
import HostKit
import PhoenixChannels

@testable import LocalStack

/// Plays the client's part of a recording against the development server and compares what comes back.
///
/// Delays are a fiftieth of the recorded ones, on both sides, or a tenth where what the database does must not overtake a
/// frame that was sent before it. Compared are statuses, bodies, frames as decoded JSON, their
/// order on each connection, and that what took seconds is not answered early.
struct RecordingReplay {
  private static func scale(_ name: String) -> UInt64 { name == "failing_join_blocks_socket" ? 10 : 50 }

  private let recording: Recording
  private let stack: LocalStack
  private let started = SystemClock.monotonic
  private var clients: [String: RawClient] = [:]
  private var versions: [String: PhoenixVersion] = [:]
  private var asked: [String: (recorded: Int, at: UInt64)] = [:]
  private var explainedMessages = 0
  private var answers: [(status: Int, body: String)] = []

  private init(_ recording: Recording, _ stack: LocalStack) {
    self.recording = recording
    self.stack = stack
  }

  static func run(_ recording: Recording) async throws {
    var options = LocalStack.Options()
    options.realtime = settings(recording.name)
    options.policy = .signedIn()
    let stack = try await LocalStack.start(
      LocalStackConfiguration(tables: [:], jwtSecret: "a secret of at least thirty-two bytes"), options: options)
    var replay = RecordingReplay(recording, stack)
    do {
      try await replay.play()
    } catch {
      replay.clients.values.forEach { $0.end() }
      try await stack.stop()
      throw error
    }
    replay.clients.values.forEach { $0.end() }
    try await stack.stop()
  }

  private static func settings(_ name: String) -> RealtimeSettings {
    var settings = RealtimeSettings()
    let scale = scale(name)
    settings.connectErrorBackoff /= scale
    settings.channelErrorBackoff /= scale
    switch name {
    case "idle_timeout":
      settings.idleTimeout /= scale
      settings.idleCheckInterval /= scale
    case "too_many_channels": settings.maximumChannelsPerSocket = 3
    case "too_many_connections": settings.maximumSockets = 5
    case "join_rejected_private_only_tenant": settings.privateOnly = true
    default: break
    }
    return settings
  }

  // MARK: Steps

  private mutating func play() async throws {
    for (index, step) in recording.steps.enumerated() {
      do {
        switch step["dir"]?.stringValue {
        case "client->server":
          try await wait(until: step)
          try await send(step)
        case "server->client": try await expect(step, followedBy: recording.steps.dropFirst(index + 1).first)
        case "event":
          if step["event"]?.stringValue != "tcp-eof" { try await wait(until: step) }
          try await event(step)
        default: break
        }
      } catch {
        throw ReplayFailure("step \(step["seq"]?.intValue ?? 0): \(error)")
      }
    }
  }

  private func milliseconds(_ step: JSONValue) -> Int { step["t_ms"]?.intValue ?? 0 }

  /// Not before its time.
  private func wait(until step: JSONValue) async throws {
    let due = started + UInt64(milliseconds(step)) * 1_000_000 / Self.scale(recording.name)
    let now = SystemClock.monotonic
    if due > now { try await SystemClock.shared.sleep(nanoseconds: due - now) }
  }

  private mutating func send(_ step: JSONValue) async throws {
    let connection = step["conn"]?.stringValue ?? ""
    asked[connection] = (milliseconds(step), SystemClock.monotonic)
    switch step["kind"]?.stringValue {
    case "http": return try await sendHTTP(step)
    case "http-upgrade":
      let request = tokens(step["request"]?.stringValue ?? "", percentEncoded: true)
        .replacing("{{ws-key}}", with: "dGhlIHNhbXBsZSBub25jZQ==")
      versions[connection] = request.contains("vsn=2.0.0") ? .v2 : .v1
      let client = try await RawClient(port: stack.port)
      clients[connection] = client
      return await client.send(Array(request.utf8))
    default: break
    }
    guard let client = clients[connection] else { throw ReplayFailure("no connection \(connection)") }
    await client.send(try frameBytes(step, versions[connection] ?? .v1))
  }

  private func frameBytes(_ step: JSONValue, _ version: PhoenixVersion) throws -> [UInt8] {
    let opcode = step["opcode"]?.stringValue ?? ""
    if opcode == "close" {
      let code = step["close_code"]?.intValue.map { UInt16($0) }
      return WebSocketParserTests.frame(8, code.map { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } ?? [])
    }
    var payload: [UInt8]
    if let text = step["text"]?.stringValue {
      payload = Array(tokens(text, percentEncoded: false).utf8)
    } else if let prefix = step["text_prefix"]?.stringValue, let size = step["size"]?.intValue {
      let suffix = version == .v2 ? #""}]"# : #""},"ref":"5"}"#
      payload = Array(prefix.utf8)
      payload += [UInt8](repeating: UInt8(ascii: "a"), count: size - payload.count - suffix.utf8.count)
      payload += Array(suffix.utf8)
    } else if let base64 = step["base64"]?.stringValue, let bytes = Base64.decode(base64, .standard) {
      payload = bytes
    } else {
      throw ReplayFailure("a frame without content")
    }
    let next = recording.steps.first { $0["seq"] == .int((step["seq"]?.intValue ?? 0) + 1) }
    let isFinal = next?["opcode"]?.stringValue != "continuation"
    let numbers: [String: UInt8] = ["continuation": 0, "text": 1, "binary": 2, "ping": 9]
    return WebSocketParserTests.frame(numbers[opcode] ?? 1, payload, isFinal: isFinal)
  }

  private mutating func sendHTTP(_ step: JSONValue) async throws {
    let given = (try? JSONValue(parsing: step["headers"]?.stringValue ?? ""))?.objectValue ?? [:]
    let headers = given.filter { $0.key != "Host" }.map {
      HTTPHeader($0.key, tokens($0.value.stringValue ?? "", percentEncoded: false))
    }
    let path = tokens(step["url"]?.stringValue ?? "", percentEncoded: true)
    let response = try await CurlHTTPClient().send(
      HTTPRequest(
        method: step["method"]?.stringValue ?? "GET", url: stack.url + path, headers: headers,
        body: step["body"]?.stringValue.map { Array($0.utf8) }))
    explainedMessages += 1
    answers.append((response.status, String(decoding: response.body, as: UTF8.self)))
  }

  // MARK: What comes back

  private mutating func expect(_ step: JSONValue, followedBy next: JSONValue?) async throws {
    let connection = step["conn"]?.stringValue ?? ""
    if step["kind"]?.stringValue == "http-response" {
      return try await expectResponse(step, connection)
    }
    guard let client = clients[connection] else { throw ReplayFailure("no connection \(connection)") }
    // The real server answers a topic that is a number with that number; ours drops it as it drops what is no frame.
    guard let expected = try? Self.describe(step, versions[connection] ?? .v1) else { return }
    try await explain(step, versions[connection] ?? .v1)
    let frame = try await client.frame()
    let received = Self.describe(frame, versions[connection] ?? .v1)
    guard Self.withoutAge(expected) == Self.withoutAge(received) else {
      throw ReplayFailure("expected \(expected), received \(received)")
    }
    // A reference is echoed as what it was: a text, a number or nothing.
    if let text = step["text"]?.stringValue, frame.opcode == .text {
      let (sent, got) = (Self.references(text), Self.references(String(decoding: frame.payload, as: UTF8.self)))
      guard sent == got else { throw ReplayFailure("references \(got) instead of \(sent)") }
    }
    if expected.contains("phx_reply") || expected.hasPrefix("close") { try checkDelay(step, connection) }
  }

  /// How long a token has been over is a time too, and on a busy machine another one.
  private static func withoutAge(_ text: String) -> String {
    text.replacing(/expired \d+ seconds ago/, with: "expired N seconds ago")
  }

  private mutating func expectResponse(_ step: JSONValue, _ connection: String) async throws {
    let answer: (status: Int, body: String)
    if connection == "http" {
      // Some answers were recorded without their request.
      guard !answers.isEmpty else { return }
      answer = answers.removeFirst()
    } else {
      guard let client = clients[connection] else { throw ReplayFailure("no connection \(connection)") }
      answer = try await client.response()
      try checkDelay(step, connection)
    }
    let status = step["status"]?.intValue
    guard status == answer.status else { throw ReplayFailure("status \(answer.status) instead of \(status ?? 0)") }
    // The answer to a request without an upgrade lists the headers of the recording client.
    guard status != 101, status != 400, let body = step["body"]?.stringValue else { return }
    guard Self.normal(body) == Self.normal(answer.body) else {
      throw ReplayFailure("body \(answer.body) instead of \(body)")
    }
  }

  /// What took the real server more than a second must take ours its fiftieth.
  private func checkDelay(_ step: JSONValue, _ connection: String) throws {
    guard let asked = asked[connection] else { return }
    let recorded = milliseconds(step) - asked.recorded
    guard recorded > 1_000 else { return }
    let took = SystemClock.monotonic - asked.at
    guard took >= UInt64(recorded) * 900_000 / Self.scale(recording.name) else {
      throw ReplayFailure("answered too early")
    }
  }

  /// A database message that no recorded statement explains was sent by the recording program itself.
  private mutating func explain(_ step: JSONValue, _ version: PhoenixVersion) async throws {
    guard let frame = try? Self.frame(of: step, version), let broadcast = frame.userBroadcast,
      let meta = broadcast.meta, case .json(let payload) = broadcast.content, var members = payload.objectValue
    else { return }
    guard explainedMessages == 0 else {
      explainedMessages -= 1
      return
    }
    if members["id"] == meta["id"] { members["id"] = nil }
    await stack.send(
      topic: String(frame.topic.dropFirst("realtime:".count)), event: broadcast.event, payload: members,
      isPrivate: !frame.topic.contains("public"))
  }

  private mutating func event(_ step: JSONValue) async throws {
    let connection = step["conn"]?.stringValue ?? ""
    switch step["event"]?.stringValue {
    case "tcp-eof":
      guard let client = clients[connection], await client.isAtEnd() else { throw ReplayFailure("still open") }
    case "sql":
      for message in DatabaseStatement.messages(step["note"]?.stringValue ?? "") {
        explainedMessages += 1
        await stack.send(message)
      }
    default: break
    }
  }

  // MARK: Comparing

  /// `join_ref` and `ref` as they are in JSON.
  private static func references(_ text: String) -> [JSONValue] {
    guard let json = try? JSONValue(parsing: text) else { return [] }
    return json.arrayValue.map { Array($0.prefix(2)) } ?? [json["join_ref"] ?? .null, json["ref"] ?? .null]
  }

  private static func frame(of step: JSONValue, _ version: PhoenixVersion) throws -> PhoenixFrame? {
    let serializer = PhoenixSerializer(version)
    if let text = step["text"]?.stringValue ?? completedText(step) { return try serializer.decode(.text(text)) }
    if let bytes = completedBytes(step) { return try serializer.decode(.binary(bytes)) }
    guard let bytes = step["base64"]?.stringValue.flatMap({ Base64.decode($0, .standard) }) else { return nil }
    return try serializer.decode(.binary(bytes))
  }

  // Of a large message from the database only the beginning was kept: what was left out is a run of the letter "a" and
  // the id, whose length is known.
  private static let databaseEnd = #"", "id": "00000000-0000-0000-0000-000000000000"}"#

  private static func completedText(_ step: JSONValue) -> String? {
    guard let prefix = step["text_prefix"]?.stringValue, let size = step["size"]?.intValue else { return nil }
    let end = databaseEnd + #","type":"broadcast"}}"#
    return prefix + String(repeating: "a", count: size - prefix.utf8.count - end.utf8.count) + end
  }

  private static func completedBytes(_ step: JSONValue) -> [UInt8]? {
    guard let prefix = step["base64_prefix"]?.stringValue, let size = step["size"]?.intValue else { return nil }
    // Cut off anywhere: what does not fill three bytes is left out.
    guard let bytes = Base64.decode(String(prefix.prefix(prefix.utf8.count / 4 * 4)), .standard) else { return nil }
    let letters = String(repeating: "a", count: size - bytes.count - databaseEnd.utf8.count)
    return bytes + Array((letters + databaseEnd).utf8)
  }

  private static func describe(_ step: JSONValue, _ version: PhoenixVersion) throws -> String {
    switch step["opcode"]?.stringValue {
    case "close": "close \(step["close_code"]?.intValue.map(String.init) ?? "-")"
    case "pong": "pong"
    case let opcode:
      "\(opcode ?? "?") \(try frame(of: step, version).map(describe) ?? "large")"
    }
  }

  private static func describe(_ frame: WebSocketFrame, _ version: PhoenixVersion) -> String {
    switch frame.opcode {
    case .close:
      frame.payload.count < 2 ? "close -" : "close \(Int(frame.payload[0]) << 8 | Int(frame.payload[1]))"
    case .pong: "pong"
    case .text:
      "text "
        + ((try? PhoenixSerializer(version).decode(.text(String(decoding: frame.payload, as: UTF8.self))))
          .map(describe) ?? "unreadable")
    case .binary:
      "binary " + ((try? PhoenixSerializer(version).decode(.binary(frame.payload))).map(describe) ?? "unreadable")
    default: "\(frame.opcode)"
    }
  }

  private static func describe(_ frame: PhoenixFrame) -> String {
    let payload: String =
      switch frame.payload {
      case .json(let value): JSONWriter.text(normal(value))
      case .bytes(let bytes): "\(bytes)"
      case .reply(let status, let bytes): "\(status) \(bytes)"
      case .broadcast(let broadcast):
        switch broadcast.content {
        case .json(let value):
          "\(broadcast.event) \(normal(broadcast.meta ?? .null)) \(normal(value))"
        case .bytes(let bytes): "\(broadcast.event) \(normal(broadcast.meta ?? .null)) \(bytes)"
        }
      }
    return "[\(frame.joinRef ?? "-") \(frame.ref ?? "-") \(frame.topic) \(frame.event)] \(payload)"
  }

  private static func normal(_ text: String) -> String {
    (try? JSONValue(parsing: text)).map { JSONWriter.text(normal($0)) } ?? text
  }

  /// Identifiers that each server makes up are all the same here.
  private static func normal(_ value: JSONValue) -> JSONValue {
    switch value {
    case .string(let text): .string(text.utf8.count == 36 && text.filter { $0 == "-" }.count == 4 ? "uuid" : text)
    case .array(let elements): .array(elements.map(normal))
    case .object(let members):
      .object(
        Dictionary(
          uniqueKeysWithValues: members.map { key, value in
            (key, key == "id" && value.numberValue != nil ? "number" : normal(value))
          }))
    default: value
    }
  }

  // MARK: Tokens

  private func tokens(_ text: String, percentEncoded: Bool) -> String {
    var text = text
    while let start = text.firstRange(of: "{{jwt:"), let end = text[start.upperBound...].firstRange(of: "}}") {
      let token = token(String(text[start.upperBound..<end.lowerBound]))
      text.replaceSubrange(
        start.lowerBound..<end.upperBound, with: percentEncoded ? PercentCoding.encode(token) : token)
    }
    return text
  }

  private func token(_ name: String) -> String {
    let now = Double(SystemClock.shared.wallMilliseconds) / 1_000
    func signed(_ role: String?, exp: Double?, secret: String? = nil) -> String {
      var claims: [String: JSONValue] = ["sub": .string(name)]
      if let role { claims["role"] = .string(role) }
      if let exp, let number = JSONNumber(exp) { claims["exp"] = .number(number) }
      return JWT.sign(claims, secret: secret ?? stack.jwtSecret)
    }
    switch name {
    case "anon": return signed("anon", exp: now + 600)
    case "service": return signed("service_role", exp: now + 600)
    case "expired": return signed("authenticated", exp: now - 10)
    // Not a fiftieth of its four seconds: the machine may take that long to come to it.
    case "short": return signed("authenticated", exp: now + 0.5)
    case "unknown-role": return signed("nobody_knows", exp: now + 600)
    case "no-role": return signed(nil, exp: now + 600)
    case "no-exp": return signed("authenticated", exp: nil)
    case "wrong-signature": return signed("authenticated", exp: now + 600, secret: "another")
    default: return signed("authenticated", exp: now + 600)
    }
  }
}
