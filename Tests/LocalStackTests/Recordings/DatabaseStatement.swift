import HostKit
import PhoenixChannels

@testable import LocalStack

/// The statements of the recordings, read as far as they occur.
enum DatabaseStatement {
  struct Message {
    var topic: String
    var event: String
    var isPrivate: Bool
    var content: UserBroadcast.Content
  }

  /// What the statement makes the server send; nothing for one that is rolled back or whose payload is no object.
  static func messages(_ statement: String) -> [Message] {
    if statement.contains("rollback") { return [] }
    if statement == "realtime.send to the joined channel" {
      return [
        Message(topic: "kizunasync:todos", event: "changed", isPrivate: true, content: .json(["a": 1]))
      ]
    }
    let literals = literals(statement)
    guard literals.count >= 2 else { return [] }
    let isPrivate = !statement.contains("',false)")
    if statement.contains("send_binary") {
      return [
        Message(topic: literals[2], event: literals[1], isPrivate: isPrivate, content: .bytes([0, 255, 16]))
      ]
    }
    if statement.contains("generate_series(1,3)") {
      return (1...3).map {
        Message(topic: literals[2], event: literals[1], isPrivate: isPrivate, content: .json(["n": .int($0)]))
      }
    }
    let hasArgument = statement.contains("%s")
    guard let json = hasArgument ? argument(statement) : literals.first, let payload = try? JSONValue(parsing: json),
      payload.objectValue != nil
    else { return [] }
    let rest = hasArgument ? literals[...] : literals.dropFirst()
    let names = Array(rest)
    return [Message(topic: names[1], event: names[0], isPrivate: isPrivate, content: .json(payload))]
  }

  /// The texts between single quotes.
  private static func literals(_ statement: String) -> [String] {
    let code = statement.firstRange(of: "--").map { statement[..<$0.lowerBound] } ?? statement[...]
    let pieces = code.split(separator: "'", omittingEmptySubsequences: false)
    return pieces.indices.filter { $0 % 2 == 1 }.map { String(pieces[$0]) }
  }

  /// The argument, which was noted as a Python text.
  private static func argument(_ statement: String) -> String? {
    guard let start = statement.firstRange(of: "('{"), let end = statement.firstRange(of: "}',)") else { return nil }
    return String(statement[statement.index(start.lowerBound, offsetBy: 2)...end.lowerBound])
      .replacing(#"\\"#, with: #"\"#)
  }
}

extension LocalStack {
  func send(_ message: DatabaseStatement.Message) async {
    switch message.content {
    case .json(let payload):
      await send(
        topic: message.topic, event: message.event, payload: payload.objectValue ?? [:], isPrivate: message.isPrivate)
    case .bytes(let bytes):
      await sendBinary(topic: message.topic, event: message.event, bytes: bytes, isPrivate: message.isPrivate)
    }
  }
}
