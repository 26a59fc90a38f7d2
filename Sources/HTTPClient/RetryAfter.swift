/// The header of a server that wants to be left alone (RFC 9110 section 10.2.3).
public enum RetryAfter {
  /// - Parameter now: milliseconds since 1970, for the form that gives a date.
  /// - Returns: whole seconds, 0 for a date in the past; nil for text of neither form.
  public static func seconds(_ text: String, now: Int64) -> Int? {
    let text = text.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
    if let seconds = Int(text) { return seconds >= 0 ? seconds : nil }
    return HTTPDate.milliseconds(text).map { Int(max(0, $0 - now + 999) / 1000) }
  }
}
