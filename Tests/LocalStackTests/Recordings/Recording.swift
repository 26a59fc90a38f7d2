import Glibc
import HostKit
import Testing

/// Conversations recorded with a real Realtime server, one JSON object a line. They are not part of this repository: the
/// directory is named by the environment variable `KIZUNA_TRANSCRIPTS`, else it is `shared/transcripts` beside the
/// package's own.
struct Recording: Sendable, CustomTestStringConvertible {
  let scenario: String
  let steps: [JSONValue]

  var testDescription: String { scenario }
  /// Without the version.
  var name: String { String(scenario.prefix { $0 != "/" }) }

  static let directory: String = {
    if let named = getenv("KIZUNA_TRANSCRIPTS"), named.pointee != 0 { return String(cString: named) }
    let package = #filePath.split(separator: "/").dropLast(5).joined(separator: "/")
    return "/\(package)/shared/transcripts"
  }()

  static let all: [Recording] = {
    guard let text = try? HostFile.readText(directory + "/realtime-server.jsonl", maximumBytes: 64 << 20) else {
      return []
    }
    var order: [String] = []
    var steps: [String: [JSONValue]] = [:]
    for line in text.split(separator: "\n") {
      guard let step = try? JSONValue(parsing: String(line)), let scenario = step["scenario"]?.stringValue else {
        continue
      }
      if steps[scenario] == nil { order.append(scenario) }
      steps[scenario, default: []].append(step)
    }
    return order.map { Recording(scenario: $0, steps: steps[$0] ?? []) }
  }()
}
