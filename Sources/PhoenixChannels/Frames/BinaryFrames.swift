import HostKit

/// The binary forms of 2.0.0 (Realtime wire contract §2.3): a kind, one length byte a field, the fields, the payload.
enum BinaryFrames {
  private enum Kind: UInt8 {
    case push = 0
    case reply = 1
    case broadcast = 2
    case userBroadcastPush = 3
    case userBroadcast = 4
  }

  private static let opaque: UInt8 = 0
  private static let json: UInt8 = 1

  // MARK: Encoding

  static func encode(_ frame: PhoenixFrame, _ side: PhoenixSerializer.Side) throws(PhoenixEncodingError) -> [UInt8] {
    let joinRef = ("join_ref", frame.joinRef ?? "")
    let ref = ("ref", frame.ref ?? "")
    let topic = ("topic", frame.topic)
    switch (frame.payload, side) {
    case (.bytes(let bytes), .client):
      return try assemble(.push, [joinRef, ref, topic, ("event", frame.event)], bytes)
    case (.bytes(let bytes), .server):
      if frame.joinRef == nil { return try assemble(.broadcast, [topic, ("event", frame.event)], bytes) }
      return try assemble(.push, [joinRef, topic, ("event", frame.event)], bytes)
    case (.reply(let status, let bytes), .server):
      return try assemble(.reply, [joinRef, ref, topic, ("status", status)], bytes)
    case (.reply, .client): throw .replyFromClient
    case (.broadcast(let broadcast), _):
      let event = ("broadcast event", broadcast.event)
      let meta = ("metadata", broadcast.meta.map { JSONWriter.text($0) } ?? "")
      let (encoding, content) = bytes(of: broadcast.content)
      if side == .client {
        return try assemble(.userBroadcastPush, [joinRef, ref, topic, event, meta], encoding: encoding, content)
      }
      return try assemble(.userBroadcast, [topic, event, meta], encoding: encoding, content)
    case (.json, _): preconditionFailure("JSON travels as text")
    }
  }

  private static func bytes(of content: UserBroadcast.Content) -> (UInt8, [UInt8]) {
    switch content {
    case .json(let value): (json, JSONWriter.data(value))
    case .bytes(let bytes): (opaque, bytes)
    }
  }

  private static func assemble(
    _ kind: Kind, _ fields: [(name: String, text: String)], encoding: UInt8? = nil, _ payload: [UInt8]
  ) throws(PhoenixEncodingError) -> [UInt8] {
    var head: [UInt8] = [kind.rawValue]
    for field in fields {
      try PhoenixSerializer.checkLength(field.text, field.name)
      head.append(UInt8(field.text.utf8.count))
    }
    if let encoding { head.append(encoding) }
    for field in fields { head.append(contentsOf: field.text.utf8) }
    return head + payload
  }

  // MARK: Decoding

  static func decode(_ bytes: [UInt8], _ side: PhoenixSerializer.Side) throws(PhoenixDecodingError) -> PhoenixFrame {
    guard let first = bytes.first else { throw .empty }
    guard let kind = Kind(rawValue: first) else { throw .unknownKind(first) }
    switch (kind, side) {
    case (.push, .client):
      var reader = try Reader(bytes, fields: ["join_ref", "topic", "event"])
      return PhoenixFrame(
        joinRef: try reader.reference(), topic: try reader.text(), event: try reader.text(),
        payload: .bytes(reader.rest))
    case (.push, .server):
      // To a server an empty reference is an empty text, not null.
      var reader = try Reader(bytes, fields: ["join_ref", "ref", "topic", "event"])
      return PhoenixFrame(
        joinRef: try reader.text(), ref: try reader.text(), topic: try reader.text(), event: try reader.text(),
        payload: .bytes(reader.rest))
    case (.reply, .client):
      var reader = try Reader(bytes, fields: ["join_ref", "ref", "topic", "status"])
      let (joinRef, ref, topic) = (try reader.reference(), try reader.reference(), try reader.text())
      return PhoenixFrame(
        joinRef: joinRef, ref: ref, topic: topic, event: PhoenixFrame.Name.reply,
        payload: .reply(status: try reader.text(), bytes: reader.rest))
    case (.broadcast, .client):
      var reader = try Reader(bytes, fields: ["topic", "event"])
      return PhoenixFrame(topic: try reader.text(), event: try reader.text(), payload: .bytes(reader.rest))
    case (.userBroadcastPush, .server):
      var reader = try Reader(bytes, fields: ["join_ref", "ref", "topic", "event", "metadata"], withEncoding: true)
      let (joinRef, ref) = (try reader.text(), try reader.text())
      return try userBroadcast(&reader, joinRef: joinRef, ref: ref)
    case (.userBroadcast, .client):
      var reader = try Reader(bytes, fields: ["topic", "event", "metadata"], withEncoding: true)
      return try userBroadcast(&reader, joinRef: nil, ref: nil)
    default: throw .unknownKind(first)
    }
  }

  private static func userBroadcast(
    _ reader: inout Reader, joinRef: String?, ref: String?
  ) throws(PhoenixDecodingError) -> PhoenixFrame {
    let (topic, event, meta) = (try reader.text(), try reader.text(), try reader.text())
    let content = reader.rest
    let broadcast = UserBroadcast(
      event: event, meta: meta.isEmpty ? Optional.none : try parse(meta.utf8),
      content: reader.encoding == opaque ? .bytes(content) : .json(try parse(content)))
    return PhoenixFrame(
      joinRef: joinRef, ref: ref, topic: topic, event: PhoenixFrame.Name.broadcast, payload: .broadcast(broadcast))
  }

  private static func parse(_ bytes: some Collection<UInt8>) throws(PhoenixDecodingError) -> JSONValue {
    do {
      return try JSONValue(parsing: bytes)
    } catch {
      throw .notJSON(offset: (error as? JSONSyntaxError)?.offset ?? 0)
    }
  }

  /// Hands out the fields of one frame in their order; made only when all of them lie inside the frame.
  private struct Reader {
    private let bytes: [UInt8]
    private let fields: [String]
    private let lengths: Int
    private var field = 0
    private var offset: Int
    let encoding: UInt8

    init(_ bytes: [UInt8], fields: [String], withEncoding: Bool = false) throws(PhoenixDecodingError) {
      let head = 1 + fields.count + (withEncoding ? 1 : 0)
      guard bytes.count >= head else { throw .truncated }
      let total = bytes[1...fields.count].reduce(head) { $0 + Int($1) }
      guard bytes.count >= total else { throw .truncated }
      self.bytes = bytes
      self.fields = fields
      lengths = 1
      offset = head
      encoding = withEncoding ? bytes[head - 1] : 0
    }

    mutating func text() throws(PhoenixDecodingError) -> String {
      let count = Int(bytes[lengths + field])
      defer {
        offset += count
        field += 1
      }
      guard let text = String(validating: bytes[offset..<(offset + count)], as: UTF8.self) else {
        throw .notUTF8(field: fields[field])
      }
      return text
    }

    mutating func reference() throws(PhoenixDecodingError) -> String? {
      let text = try text()
      return text.isEmpty ? nil : text
    }

    var rest: [UInt8] { Array(bytes[offset...]) }
  }
}
