/// One HTTP request as the development server received it, whole.
public struct StackRequest: Sendable, Hashable {
  /// As sent, for example `POST`.
  public var method: String
  /// Percent-encoded as sent, without the query.
  public var path: String
  /// What follows the `?`, percent-encoded as sent; empty when there is none.
  public var query: String
  /// In the order received.
  public var headers: [StackHeader]
  public var body: [UInt8]

  public init(
    method: String, path: String, query: String = "", headers: [StackHeader] = [], body: [UInt8] = []
  ) {
    self.method = method
    self.path = path
    self.query = query
    self.headers = headers
    self.body = body
  }

  /// The first header of that name, compared without case.
  public func header(_ name: String) -> String? {
    headers.first { $0.name.utf8.elementsEqual(name.utf8, by: StackHeader.sameIgnoringCase) }?.value
  }
}

public struct StackHeader: Sendable, Hashable {
  public var name: String
  public var value: String

  public init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }

  static func sameIgnoringCase(_ left: UInt8, _ right: UInt8) -> Bool {
    lowered(left) == lowered(right)
  }

  private static func lowered(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
