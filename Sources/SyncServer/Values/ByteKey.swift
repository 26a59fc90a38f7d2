/// Text that is a key: two are equal when their bytes are. `String` compares by canonical equivalence, under which two
/// different keys of a table could be one.
public struct ByteKey: Hashable, Comparable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
  public let text: String

  public init(_ text: String) {
    var text = text
    text.makeContiguousUTF8()
    self.text = text
  }

  public init(stringLiteral value: String) {
    self.init(value)
  }

  public static func == (left: ByteKey, right: ByteKey) -> Bool {
    let (left, right) = (left.text.utf8, right.text.utf8)
    return left.count == right.count && left.elementsEqual(right)
  }

  public func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }

  public static func < (left: ByteKey, right: ByteKey) -> Bool {
    left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
  }

  public var description: String { text }
}
