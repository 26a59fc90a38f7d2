/// What can be done about a refusal.
public enum FailureClass: String, Sendable, Hashable, CaseIterable {
  /// Passes by itself: try again with growing delays.
  case transient
  /// The server is guarding itself: try again after a long delay.
  case limit
  /// The token or key was refused: get a fresh one once, then wait for one.
  case auth
  /// These credentials may not read this topic.
  case denied
  /// The configuration or an operator must change something: probe slowly.
  case config
}

/// Why a connection or a topic is not in service, in words that can be shown and logged.
public struct FailureReport: Error, Sendable, Hashable, CustomStringConvertible {
  public let failureClass: FailureClass
  /// Words of this package, among them the server's known codes and sentences, at most 200 characters; never a URL, a
  /// token or a message body.
  public let text: String
  /// HTTP status of a refused upgrade.
  public let status: Int?
  /// Close code of a connection that the server closed.
  public let closeCode: UInt16?
  /// The server's answer is none that is known, and was taken for one that passes.
  public let isUnknown: Bool

  init(
    _ failureClass: FailureClass, _ text: String, status: Int? = nil, closeCode: UInt16? = nil, isUnknown: Bool = false
  ) {
    self.failureClass = failureClass
    self.text = Self.clean(text)
    self.status = status
    self.closeCode = closeCode
    self.isUnknown = isUnknown
  }

  public var description: String {
    if let status { return "HTTP \(status): \(text)" }
    if let closeCode { return "close \(closeCode): \(text)" }
    return text
  }

  /// A peer chose these characters: no control characters, not too many, and no word as long as a token or key.
  private static func clean(_ text: String) -> String {
    let line = text.unicodeScalars.prefix(1_000).map { scalar in
      scalar.properties.generalCategory == .control ? " " : Character(scalar)
    }
    let words = String(line).split(separator: " ", omittingEmptySubsequences: true).map { word in
      word.utf8.count > 64 ? "…" : word
    }
    return String(words.joined(separator: " ").prefix(200))
  }
}
