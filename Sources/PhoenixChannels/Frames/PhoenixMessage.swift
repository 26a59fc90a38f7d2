/// One whole WebSocket message, as a serializer makes it and takes it.
public enum PhoenixMessage: Sendable, Hashable {
  case text(String)
  case binary([UInt8])

  /// Bytes on the wire without the WebSocket header.
  public var byteCount: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .binary(let bytes): bytes.count
    }
  }
}
