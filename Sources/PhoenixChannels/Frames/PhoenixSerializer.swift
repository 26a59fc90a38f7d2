import HostKit

/// The protocol version a connection asks for with `vsn`.
public enum PhoenixVersion: String, Sendable, Hashable, CaseIterable {
  /// One JSON object a message; text only, without `join_ref` from the server.
  case v1 = "1.0.0"
  /// One JSON array a message, and binary messages for broadcasts.
  case v2 = "2.0.0"
}

/// Turns frames into WebSocket messages and back (Realtime wire contract §2).
///
/// The two directions differ on the wire, so a serializer stands on one side. Decoding never traps, whatever the bytes.
public struct PhoenixSerializer: Sendable, Hashable {
  public enum Side: Sendable, Hashable {
    case client, server
  }

  public let version: PhoenixVersion
  public let side: Side

  public init(_ version: PhoenixVersion, side: Side = .client) {
    self.version = version
    self.side = side
  }

  /// - Throws: `PhoenixEncodingError`, in particular for names of more than 255 UTF-8 bytes.
  public func encode(_ frame: PhoenixFrame) throws(PhoenixEncodingError) -> PhoenixMessage {
    try Self.checkLength(frame.topic, "topic")
    try Self.checkLength(frame.event, "event")
    switch (version, frame.payload) {
    case (.v1, .json(let payload)): return .text(TextFrames.encodeV1(frame, payload, side))
    case (.v2, .json(let payload)): return .text(TextFrames.encodeV2(frame, payload))
    case (.v1, .broadcast(let broadcast)):
      try Self.checkLength(broadcast.event, "broadcast event")
      guard let payload = broadcast.json else { throw .binaryNeedsVersion2 }
      return .text(TextFrames.encodeV1(frame, payload, side))
    case (.v1, .bytes), (.v1, .reply): throw .binaryNeedsVersion2
    case (.v2, .bytes), (.v2, .reply), (.v2, .broadcast): return .binary(try BinaryFrames.encode(frame, side))
    }
  }

  public func decode(_ message: PhoenixMessage) throws(PhoenixDecodingError) -> PhoenixFrame {
    switch (version, message) {
    case (.v1, .text(let text)): try TextFrames.decodeV1(text, side)
    case (.v2, .text(let text)): try TextFrames.decodeV2(text, side)
    case (.v2, .binary(let bytes)): try BinaryFrames.decode(bytes, side)
    case (.v1, .binary): throw .binaryNeedsVersion2
    }
  }

  static func checkLength(_ text: String, _ field: String) throws(PhoenixEncodingError) {
    let count = text.utf8.count
    if count > 255 { throw .nameTooLong(field: field, bytes: count) }
  }
}
