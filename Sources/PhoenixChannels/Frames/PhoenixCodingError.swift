/// Why a frame cannot be put on the wire.
public enum PhoenixEncodingError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Lengths travel as one byte; the server cannot deliver longer names (Realtime wire contract §2.3, §3).
  case nameTooLong(field: String, bytes: Int)
  /// Version 1.0.0 knows no binary messages.
  case binaryNeedsVersion2
  /// Only a server answers in binary.
  case replyFromClient

  public var description: String {
    switch self {
    case .nameTooLong(let field, let bytes): "the \(field) takes \(bytes) bytes in UTF-8; the protocol allows 255"
    case .binaryNeedsVersion2: "bytes can only be sent with protocol version 2.0.0"
    case .replyFromClient: "a client does not send binary replies"
    }
  }
}

/// Why a received message is not a frame. Never carries any of its text.
public enum PhoenixDecodingError: Error, Sendable, Hashable, CustomStringConvertible {
  case notJSON(offset: Int)
  /// JSON, but neither the array of 2.0.0 nor the object of 1.0.0.
  case wrongShape
  /// An array with fewer than five places.
  case tooShort
  /// A member that must be there is missing.
  case missing(member: String)
  /// A topic, event or reference of the wrong JSON type.
  case wrongType(member: String)
  case binaryNeedsVersion2
  case empty
  case unknownKind(UInt8)
  /// The lengths at the head of a binary frame point past its end.
  case truncated
  case notUTF8(field: String)

  public var description: String {
    switch self {
    case .notJSON(let offset): "not valid JSON at byte \(offset)"
    case .wrongShape: "not a message of this protocol version"
    case .tooShort: "an array with fewer than five places"
    case .missing(let member): "without \(member)"
    case .wrongType(let member): "a \(member) of the wrong type"
    case .binaryNeedsVersion2: "a binary message under protocol version 1.0.0"
    case .empty: "an empty binary message"
    case .unknownKind(let kind): "a binary message of unknown kind \(kind)"
    case .truncated: "a binary message shorter than its lengths say"
    case .notUTF8(let field): "a \(field) that is not UTF-8"
    }
  }
}
