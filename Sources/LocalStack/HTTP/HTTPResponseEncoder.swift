import HostKit

/// The bytes of an HTTP/1.1 answer.
enum HTTPResponseEncoder {
  static let continueBytes = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

  /// - Parameter date: the value of the `date` header.
  static func encode(_ response: StackResponse, keepAlive: Bool, date: String, omitBody: Bool = false) -> [UInt8] {
    var head = "HTTP/1.1 \(response.status) \(reason(response.status))\r\n"
    for header in response.headers { head += "\(header.name): \(header.value)\r\n" }
    head += "date: \(date)\r\n"
    if response.status != 204 && response.status != 304 { head += "content-length: \(response.body.count)\r\n" }
    if !keepAlive { head += "connection: close\r\n" }
    head += "\r\n"
    var bytes = Array(head.utf8)
    if !omitBody { bytes += response.body }
    return bytes
  }

  static func encodeUpgrade(acceptKey: String, date: String) -> [UInt8] {
    Array(
      """
      HTTP/1.1 101 Switching Protocols\r
      connection: Upgrade\r
      date: \(date)\r
      sec-websocket-accept: \(acceptKey)\r
      upgrade: websocket\r
      \r

      """.utf8)
  }

  static func reason(_ status: Int) -> String {
    switch status {
    case 200: "OK"
    case 201: "Created"
    case 202: "Accepted"
    case 204: "No Content"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 406: "Not Acceptable"
    case 409: "Conflict"
    case 413: "Content Too Large"
    case 414: "URI Too Long"
    case 415: "Unsupported Media Type"
    case 422: "Unprocessable Content"
    case 429: "Too Many Requests"
    case 431: "Request Header Fields Too Large"
    case 500: "Internal Server Error"
    case 502: "Bad Gateway"
    case 503: "Service Unavailable"
    case 504: "Gateway Timeout"
    default: "Status"
    }
  }
}

/// `Mon, 30 Nov 2026 01:05:26 GMT`
enum HTTPDate {
  private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  static func text(milliseconds: Int64) -> String {
    let time = UTCTime(secondsSince1970: milliseconds / 1000)
    return "\(days[time.weekday]), \(UTCTime.padded(time.day, 2)) \(months[Int(time.month) - 1]) \(time.year) "
      + "\(time.clock) GMT"
  }
}
