/// The name of a Realtime channel, checked once so that everything behind it can be sent.
///
/// Applications, database functions, policies and HTTP use the bare `name`; frames carry `wireName`, which is the name
/// behind the prefix `realtime:` (Realtime wire contract §3). Names are compared byte for byte, case included.
public struct ChannelTopic: Sendable, Hashable, CustomStringConvertible {
  /// Without prefix, for example `kizunasync:todos`.
  public let name: String

  public static let prefix = "realtime:"

  /// - Throws: `ChannelTopicError` for an empty name and for one that would not fit into a frame.
  public init(_ name: String) throws(ChannelTopicError) {
    if name.isEmpty { throw .empty }
    let bytes = Self.prefix.utf8.count + name.utf8.count
    if bytes > 255 { throw .tooLong(bytes: bytes) }
    self.name = name
  }

  /// With prefix, as it travels.
  public var wireName: String { Self.prefix + name }

  public var description: String { name }
}

public enum ChannelTopicError: Error, Sendable, Hashable, CustomStringConvertible {
  case empty
  /// Bytes of the name with its prefix.
  case tooLong(bytes: Int)

  public var description: String {
    switch self {
    case .empty: "a channel needs a name"
    case .tooLong(let bytes): "a channel name with its prefix takes \(bytes) bytes in UTF-8; the protocol allows 255"
    }
  }
}
