import HostKit

/// A pull's arguments, read but not yet checked against the configuration (Kizuna wire contract §4.1).
struct PullRequest {
  struct Bucket {
    let table: String
    let params: [String: String]
  }

  let buckets: [Bucket]
  let cursor: CursorToken
  /// The cursor as it was sent; a signal echoes it.
  let cursorText: String
  let schemaVersion: Int?
  let limit: Int

  init(_ body: JSONValue, configuration: SyncServerConfiguration) throws(RPCError) {
    let arguments = try Arguments(
      body, of: "pull", required: ["buckets", "cursor", "schema_version"], optional: ["limit", "client_id"])
    _ = try arguments.uuid("client_id")
    limit = try arguments.integer("limit") ?? configuration.defaultPageLimit
    guard limit >= 1 else { throw RPCError("22023", "limit must be at least 1") }
    guard let entries = arguments["buckets"].arrayValue else {
      throw RPCError("22023", "buckets must be an array")
    }
    guard entries.count <= configuration.maxBucketEntries else {
      throw RPCError("22023", "at most \(configuration.maxBucketEntries) bucket entries can be pulled at once")
    }
    buckets = try entries.enumerated().map { index, entry throws(RPCError) in
      try Self.bucket(entry, position: index + 1)
    }
    schemaVersion = try arguments.integer("schema_version")
    guard let text = ColumnType.text(of: arguments["cursor"]), let token = CursorToken(text) else {
      throw RPCError("P0001", "the cursor cannot be decoded")
    }
    (cursorText, cursor) = (text, token)
  }

  private static func bucket(_ entry: JSONValue, position: Int) throws(RPCError) -> Bucket {
    guard let table = entry["table"]?.stringValue, let params = entry["params"]?.objectValue else {
      throw RPCError("22023", "bucket entry \(position) needs a table and params")
    }
    var texts: [String: String] = [:]
    for (column, value) in params {
      guard let text = ColumnType.text(of: value) else {
        throw RPCError("22023", "bucket entry \(position): a param must be a string, an integer or a boolean")
      }
      texts[column] = text
    }
    return Bucket(table: table, params: texts)
  }
}
