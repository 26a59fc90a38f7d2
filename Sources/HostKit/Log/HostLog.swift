/// Where a module writes what happened. One call is one event: a stable name and a few fields.
///
/// Fields are for counts, states, codes, table names and hosts. Tokens, keys, full URLs, row values and message bodies
/// are never passed to a log; nothing is filtered here.
public struct HostLog: Sendable {
  public enum Level: String, Sendable, Comparable, CaseIterable {
    case debug, info, warning, error
    private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
    public static func < (left: Level, right: Level) -> Bool { left.rank < right.rank }
  }

  public let minimum: Level
  private let sink: @Sendable (Level, String, [(String, JSONValue)]) -> Void

  public init(minimum: Level = .info, sink: @escaping @Sendable (Level, String, [(String, JSONValue)]) -> Void) {
    self.minimum = minimum
    self.sink = sink
  }

  /// Drops everything.
  public static let none = HostLog(minimum: .error) { _, _, _ in }

  /// - Parameter event: dotted lower-case name, for example `realtime.open`.
  public func log(_ level: Level, _ event: String, _ fields: KeyValuePairs<String, JSONValue> = [:]) {
    guard level >= minimum else { return }
    sink(level, event, fields.map { ($0.key, $0.value) })
  }

  /// The same for fields that are put together at run time.
  public func log(_ level: Level, _ event: String, fields: [(String, JSONValue)]) {
    guard level >= minimum else { return }
    sink(level, event, fields)
  }

  public func debug(_ event: String, _ fields: KeyValuePairs<String, JSONValue> = [:]) { log(.debug, event, fields) }
  public func info(_ event: String, _ fields: KeyValuePairs<String, JSONValue> = [:]) { log(.info, event, fields) }
  public func warning(_ event: String, _ fields: KeyValuePairs<String, JSONValue> = [:]) {
    log(.warning, event, fields)
  }
  public func error(_ event: String, _ fields: KeyValuePairs<String, JSONValue> = [:]) { log(.error, event, fields) }
}
