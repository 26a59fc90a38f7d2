import ServerPack

/// What the server said, as `psql` writes it to standard error in its verbose form: `psql:FILE:LINE: SEVERITY:  STATE: text`,
/// then details on lines of their own.
struct ServerMessage: Equatable {
  let state: String
  /// The text and the hint.
  let text: String

  /// Warnings and notices have classes of their own, whatever the server's language calls them.
  var isError: Bool { !["00", "01", "02"].contains(state.prefix(2)) }

  /// All of them, in order.
  static func all(in lines: [String]) -> [ServerMessage] {
    var messages: [ServerMessage] = []
    var state: String?
    var text: [String] = []
    var hint: [String] = []
    var part = Part.text
    func end() {
      if let state { messages.append(ServerMessage(state: state, text: (text + hint).joined(separator: "\n"))) }
    }
    for line in lines {
      if let (found, first) = start(line) {
        end()
        (state, text, hint, part) = (found, [first], [], .text)
      } else if line.hasPrefix("HINT:  ") {
        part = .hint
        hint = [String(line.dropFirst(7))]
      } else if Self.details.contains(where: line.hasPrefix) {
        part = .other
      } else if part == .text {
        text.append(line)
      } else if part == .hint {
        hint.append(line)
      }
    }
    end()
    return messages
  }

  private enum Part { case text, hint, other }

  private static let details = ["DETAIL:  ", "CONTEXT:  ", "LOCATION:  ", "QUERY:  ", "STATEMENT:  ", "LINE "]

  private static func start(_ line: String) -> (state: String, text: String)? {
    guard line.hasPrefix("psql:"), let gap = line.firstRange(of: ":  ") else { return nil }
    let rest = line[gap.upperBound...]
    guard rest.count > 7, rest.dropFirst(5).hasPrefix(": "),
      rest.prefix(5).utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) })
    else { return nil }
    return (String(rest.prefix(5)), String(rest.dropFirst(7)))
  }
}
