/// Where a document stops being JSON, and what was expected there. Never carries the document's text.
public struct JSONSyntaxError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Byte offset from the start of the document.
  public let offset: Int
  /// What was expected, in a few words.
  public let reason: String

  public init(offset: Int, reason: String) {
    self.offset = offset
    self.reason = reason
  }

  public var description: String { "not valid JSON at byte \(offset): \(reason)" }
}
