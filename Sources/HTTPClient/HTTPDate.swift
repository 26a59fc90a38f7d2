import HostKit

/// The server's clock, from the `Date` header.
public enum HTTPDate {
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// Milliseconds since 1970 of the form every current server sends (RFC 9110 section 5.6.7):
  /// `Sun, 06 Nov 1994 08:49:37 GMT`. Nil for anything else.
  public static func milliseconds(_ text: String) -> Int64? {
    let parts = text.split(separator: " ")
    guard parts.count == 6, parts[0].count == 4, parts[0].hasSuffix(","), parts[5] == "GMT",
      let day = number(parts[1], in: 1...31), let month = months.firstIndex(of: String(parts[2])),
      parts[3].utf8.count == 4, let year = number(parts[3], in: 1970...9999)
    else { return nil }
    let time = parts[4].split(separator: ":", omittingEmptySubsequences: false)
    guard time.count == 3, let hour = number(time[0], in: 0...23), let minute = number(time[1], in: 0...59),
      let second = number(time[2], in: 0...60)
    else { return nil }
    let moment = UTCTime(year: year, month: Int64(month) + 1, day: day, hour: hour, minute: minute, second: second)
    return moment.map { $0.secondsSince1970 * 1000 }
  }

  private static func number(_ text: Substring, in range: ClosedRange<Int64>) -> Int64? {
    guard text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let value = Int64(text), range.contains(value) else {
      return nil
    }
    return value
  }
}

extension HTTPResponse {
  /// The server's clock when it answered, in milliseconds since 1970; nil when it did not say.
  public var serverDate: Int64? { header("date").flatMap(HTTPDate.milliseconds) }
}
