/// The header of a server that wants to be left alone (RFC 9110 section 10.2.3).
public enum RetryAfter {
  /// - Parameter now: milliseconds since 1970, for the form that gives a date.
  /// - Returns: whole seconds, 0 for a date in the past, `Int.max` for more than there are; nil for text of neither form.
  public static func seconds(_ text: String, now: Int64) -> Int? {
    let text = text.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    let isNumber = !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    if isNumber { return Int(text) ?? .max }
    return HTTPDate.milliseconds(text).map { Int(max(0, $0 - now + 999) / 1000) }
  }
}
