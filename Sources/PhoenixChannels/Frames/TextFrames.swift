import HostKit

/// The textual forms: the object of 1.0.0 and the array of 2.0.0.
enum TextFrames {
  static func encodeV1(_ frame: PhoenixFrame, _ payload: JSONValue, _ side: PhoenixSerializer.Side) -> String {
    // A server drops an object without `ref`, so it is there even when it is null.
    var members: [String: JSONValue] = [
      "topic": .string(frame.topic), "event": .string(frame.event), "payload": payload,
      "ref": reference(frame.ref, frame),
    ]
    if side == .client, let joinRef = frame.joinRef { members["join_ref"] = reference(joinRef, frame) }
    return JSONWriter.text(.object(members))
  }

  static func encodeV2(_ frame: PhoenixFrame, _ payload: JSONValue) -> String {
    JSONWriter.text([
      reference(frame.joinRef, frame), reference(frame.ref, frame), .string(frame.topic), .string(frame.event), payload,
    ])
  }

  private static func reference(_ text: String?, _ frame: PhoenixFrame) -> JSONValue {
    if frame.hasNumericReferences, let number = text.flatMap({ JSONNumber(lexeme: $0) }) { return .number(number) }
    return .string(orNull: text)
  }

  static func decodeV1(_ text: String, _ side: PhoenixSerializer.Side) throws(PhoenixDecodingError) -> PhoenixFrame {
    guard case .object(let members) = try parse(text) else { throw .wrongShape }
    guard let payload = members["payload"] else { throw .missing(member: "payload") }
    if side == .server, members["ref"] == nil { throw .missing(member: "ref") }
    var frame = PhoenixFrame(
      joinRef: try reference(members["join_ref"], "join_ref"), ref: try reference(members["ref"], "ref"),
      topic: try name(members["topic"], "topic"), event: try name(members["event"], "event"), payload)
    frame.hasNumericReferences = side == .server && members["ref"]?.numberValue != nil
    return frame
  }

  static func decodeV2(_ text: String, _ side: PhoenixSerializer.Side) throws(PhoenixDecodingError) -> PhoenixFrame {
    guard case .array(let places) = try parse(text) else { throw .wrongShape }
    guard places.count >= 5 else { throw .tooShort }
    var frame = PhoenixFrame(
      joinRef: try reference(places[0], "join_ref"), ref: try reference(places[1], "ref"),
      topic: try name(places[2], "topic"), event: try name(places[3], "event"), places[4])
    frame.hasNumericReferences = side == .server && places[1].numberValue != nil
    return frame
  }

  private static func parse(_ text: String) throws(PhoenixDecodingError) -> JSONValue {
    do {
      return try JSONValue(parsing: text)
    } catch {
      throw .notJSON(offset: (error as? JSONSyntaxError)?.offset ?? 0)
    }
  }

  private static func name(_ value: JSONValue?, _ member: String) throws(PhoenixDecodingError) -> String {
    guard let value else { throw .missing(member: member) }
    guard let text = value.stringValue else { throw .wrongType(member: member) }
    return text
  }

  /// A number counts as its digits: other clients send numbers.
  private static func reference(_ value: JSONValue?, _ member: String) throws(PhoenixDecodingError) -> String? {
    switch value {
    case nil, .null: nil
    case .string(let text): text
    case .number(let number): number.lexeme
    default: throw .wrongType(member: member)
    }
  }
}
