/// The answer of an HTTP/1 proxy to CONNECT, read piece by piece up to the blank line that ends it.
///
/// What follows the blank line of a 2xx answer belongs to the tunnel, whatever the headers say about a body (RFC 9110
/// §9.3.6). Answers with 1xx that come before the real one are skipped.
struct ProxyAnswer {
  enum Verdict: Equatable {
    /// The blank line is still to come.
    case incomplete
    /// 2xx
    case opened
    /// Another status. `takesBasic` is false when the proxy names ways to sign in and Basic is none of them.
    case refused(status: Int, takesBasic: Bool)
    case tooLong
    case notHTTP
  }

  static let maximumBytes = 16 << 10

  private var count = 0
  private var line: [UInt8] = []
  /// nil until the status line is complete.
  private var status: Int?
  private var waysToSignIn: [Substring] = []

  /// - Returns: how many bytes of the piece belong to the answer, and what it says. After anything but `.incomplete` no
  ///   more is taken.
  mutating func take(_ piece: some Sequence<UInt8>) -> (used: Int, verdict: Verdict) {
    var used = 0
    for byte in piece {
      used += 1
      count += 1
      let verdict = byte == UInt8(ascii: "\n") ? endLine() : add(byte)
      if verdict != .incomplete { return (used, verdict) }
      if count == Self.maximumBytes { return (used, .tooLong) }
    }
    return (used, .incomplete)
  }

  private mutating func add(_ byte: UInt8) -> Verdict {
    line.append(byte)
    // A server of another protocol may never end its line.
    return status == nil && !line.starts(with: "HTTP/1.".utf8.prefix(line.count)) ? .notHTTP : .incomplete
  }

  private mutating func endLine() -> Verdict {
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    defer { line.removeAll(keepingCapacity: true) }
    guard let status else {
      self.status = Self.status(in: line)
      return self.status == nil ? .notHTTP : .incomplete
    }
    guard line.isEmpty else {
      addHeader(String(decoding: line, as: UTF8.self))
      return .incomplete
    }
    switch status {
    case 100, 102..<200:
      self.status = nil
      waysToSignIn = []
      return .incomplete
    case 200..<300: return .opened
    default:
      return .refused(status: status, takesBasic: waysToSignIn.isEmpty || waysToSignIn.contains("basic"))
    }
  }

  /// `HTTP/1.1 200 OK`; the text after the number, and the blank before it, may be missing.
  private static func status(in line: [UInt8]) -> Int? {
    let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
    guard fields.count >= 2, fields[0].count == 8, fields[1].count == 3,
      fields[1].allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let status = Int(String(decoding: fields[1], as: UTF8.self)), status >= 100
    else { return nil }
    return status
  }

  /// Split at the commas outside of quoted strings, in which a backslash takes the next character along.
  private static func challenges(_ text: Substring) -> [Substring] {
    var isQuoted = false
    var isEscaped = false
    return text.split { character in
      defer { isEscaped = isQuoted && !isEscaped && character == "\\" }
      if character == "\"", !isEscaped { isQuoted.toggle() }
      return character == "," && !isQuoted
    }
  }

  /// Of the headers only the ways to sign in matter: the first word of each, of which a line may hold several.
  private mutating func addHeader(_ text: String) {
    let header = text.lowercased()
    guard header.hasPrefix("proxy-authenticate:") else { return }
    for challenge in Self.challenges(header.drop(while: { $0 != ":" }).dropFirst()) {
      if let way = challenge.split(whereSeparator: { $0 == " " || $0 == "\t" }).first { waysToSignIn.append(way) }
    }
  }
}
