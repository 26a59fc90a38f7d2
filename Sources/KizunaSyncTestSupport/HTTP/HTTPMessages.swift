import HTTPClient
import HostKit

extension HTTPRequest {
  /// The path of the URL, without host and query.
  public var path: String {
    let rest = url.range(of: "://").map { url[$0.upperBound...] } ?? url[...]
    let path = rest.drop { $0 != "/" }
    return String(path.prefix { $0 != "?" && $0 != "#" })
  }

  /// The first header of that name, compared without case.
  public func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }

  /// The body as JSON; nil when there is none or it is none.
  public var json: JSONValue? {
    body.flatMap { try? JSONValue(parsing: $0) }
  }
}

extension HTTPResponse {
  /// An answer with a JSON body.
  public static func json(_ value: JSONValue, status: Int = 200, headers: [HTTPHeader] = []) -> HTTPResponse {
    HTTPResponse(
      status: status, headers: [HTTPHeader("Content-Type", "application/json; charset=utf-8")] + headers,
      body: JSONWriter.data(value))
  }
}

extension String {
  fileprivate func range(of text: String) -> Range<String.Index>? {
    var at = startIndex
    while at < endIndex {
      if self[at...].hasPrefix(text) { return at..<index(at, offsetBy: text.count) }
      at = index(after: at)
    }
    return nil
  }
}
