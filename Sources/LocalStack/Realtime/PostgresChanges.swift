import HostKit

/// As much of `postgres_changes` as an honest server without a database can do: it echoes the request and says that no
/// changes will come (Realtime wire contract §15).
enum PostgresChanges {
  /// The entries of the join's answer.
  static func echo(_ request: JoinRequest, topic: String) -> [JSONValue] {
    let asked = request.isLegacy ? [legacyEntry(topic)] : request.postgresChanges
    return asked.map { entry in
      guard var members = entry.objectValue else { return entry }
      members["id"] = .int(Int(identifier(JSONWriter.text(entry))))
      return .object(members)
    }
  }

  /// Without `config` the topic is read as `schema:table:filter`.
  private static func legacyEntry(_ topic: String) -> JSONValue {
    let parts = topic.split(separator: ":", maxSplits: 2).map(String.init)
    var members: [String: JSONValue] = [:]
    for (name, value) in zip(["schema", "table", "filter"], parts) { members[name] = .string(value) }
    return .object(members)
  }

  private static func identifier(_ text: String) -> UInt32 {
    text.utf8.reduce(2_166_136_261) { ($0 ^ UInt32($1)) &* 16_777_619 } & 0x07FF_FFFF
  }

  static func unavailable(_ entries: [JSONValue]) -> String {
    let first = entries.first
    let schema = first?["schema"]?.stringValue ?? "*"
    let table = first?["table"]?.stringValue ?? "*"
    let event = first?["event"]?.stringValue ?? "*"
    return "Unable to subscribe to changes with given parameters. Please check Realtime is enabled for the given"
      + " connect parameters: [event: \(event), schema: \(schema), table: \(table), filters: [], select: nil]"
  }
}
