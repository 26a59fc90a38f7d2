/// The text operators. Characters are Unicode scalars, as in PostgreSQL and SQLite.
enum TextMatch {
  private static let blanks: Set<Unicode.Scalar> = [" ", "\t", "\n", "\r", "\u{0B}", "\u{0C}", "\u{A0}"]

  static func trimmed(_ text: String) -> String {
    let scalars = text.unicodeScalars
    guard let first = scalars.firstIndex(where: { !blanks.contains($0) }),
      let last = scalars.lastIndex(where: { !blanks.contains($0) })
    else { return "" }
    return String(scalars[first...last])
  }

  static func tokens(_ text: String) -> [String] {
    text.unicodeScalars.split(whereSeparator: blanks.contains).map { String($0) }
  }

  /// Whether `needle` occurs in `text`, both in lower case already.
  static func occurs(_ needle: String, in text: String) -> Bool {
    let needle = Array(needle.utf8)
    let text = Array(text.utf8)
    guard let first = needle.first else { return true }
    guard needle.count <= text.count else { return false }
    return (0...(text.count - needle.count)).contains { start in
      text[start] == first && text[start..<(start + needle.count)].elementsEqual(needle)
    }
  }

  /// A word search. Case makes no difference.
  static func search(_ query: String, in text: String, _ type: KizunaSyncTextSearchType) -> Bool {
    let text = text.lowercased()
    let query = query.lowercased()
    return switch type {
    case .plain: tokens(query).allSatisfy { occurs($0, in: text) }
    case .phrase: occurs(trimmed(query), in: text)
    case .websearch: phrasesAndTokens(query).allSatisfy { occurs($0, in: text) }
    }
  }

  /// `a "b c" d` is a, b c, d. A quotation mark that is never closed reaches to the end.
  static func phrasesAndTokens(_ query: String) -> [String] {
    query.split(separator: "\"", omittingEmptySubsequences: false).enumerated().flatMap { index, part in
      index.isMultiple(of: 2) ? tokens(String(part)) : [trimmed(String(part))].filter { !$0.isEmpty }
    }
  }
}

/// A `LIKE` pattern: anchored; `%` and `*` any run, `_` one character, `\` takes the next one literally.
struct LikePattern {
  private enum Element: Equatable {
    case run
    case one
    case literal(Unicode.Scalar)
  }

  private let elements: [Element]
  private let ignoringCase: Bool

  init(_ pattern: String, ignoringCase: Bool) {
    self.ignoringCase = ignoringCase
    var elements: [Element] = []
    var escaped = false
    for scalar in (ignoringCase ? pattern.lowercased() : pattern).unicodeScalars {
      switch scalar {
      case _ where escaped:
        elements.append(.literal(scalar))
        escaped = false
      case "\\": escaped = true
      case "%", "*":
        if elements.last != .run { elements.append(.run) }
      case "_": elements.append(.one)
      default: elements.append(.literal(scalar))
      }
    }
    // A lone escape at the end stands for itself.
    if escaped { elements.append(.literal("\\")) }
    self.elements = elements
  }

  /// Linear for patterns without runs, at worst the product of the two lengths.
  func matches(_ text: String) -> Bool {
    let text = Array((ignoringCase ? text.lowercased() : text).unicodeScalars)
    var position = 0
    var element = 0
    var lastRun: (element: Int, position: Int)?
    while position < text.count {
      if element < elements.count {
        switch elements[element] {
        case .run:
          lastRun = (element, position)
          element += 1
          continue
        case .literal(let scalar) where scalar != text[position]: break
        default:
          element += 1
          position += 1
          continue
        }
      }
      // What followed the last run did not fit here: let the run take one character more.
      guard let run = lastRun else { return false }
      lastRun = (run.element, run.position + 1)
      element = run.element + 1
      position = run.position + 1
    }
    return elements[element...].allSatisfy { $0 == .run }
  }
}
