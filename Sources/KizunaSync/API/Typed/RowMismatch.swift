import HostKit

/// Why a row cannot become a value of an app's type, or the other way round. Says where and what, never the value.
struct RowMismatch: Error {
  /// From the column inwards.
  let path: [any CodingKey]
  let problem: String

  init(_ path: [any CodingKey], _ problem: String) {
    self.path = path
    self.problem = problem
  }

  /// - Parameter type: the app's.
  func error(_ code: ErrorCode, table: String, type: Any.Type) -> KizunaSyncError {
    let place = path.isEmpty ? "the row" : "the column \(Self.text(path))"
    return KizunaSyncError(code, "\(table): \(place) \(problem); adapt \(type) or the column")
  }

  private static func text(_ path: [any CodingKey]) -> String {
    path.dropFirst().reduce(path[0].stringValue) { text, key in
      key.intValue.map { "\(text)[\($0)]" } ?? "\(text).\(key.stringValue)"
    }
  }
}

/// The place of an element in an array, or `super`.
struct PlainKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(stringValue: String) {
    self.stringValue = stringValue
    intValue = nil
  }

  init(intValue: Int) {
    stringValue = String(intValue)
    self.intValue = intValue
  }
}
