import HostKit

/// The arguments of `pull` (Kizuna wire contract §4.1).
struct PullRequest: Equatable, Sendable {
  struct Bucket: Equatable, Sendable {
    var table: String
    /// Bucket column → value; empty for the whole table.
    var params: [String: JSONValue]
  }

  var buckets: [Bucket]
  var cursor: String
  var clientID: String
  var schemaVersion: Int
  /// Left out when nil: the server's default holds.
  var limit: Int?

  static func json(_ bucket: Bucket) -> JSONValue {
    ["table": .string(bucket.table), "params": .object(bucket.params)]
  }

  static func json(_ buckets: [Bucket]) -> JSONValue { .array(buckets.map(json)) }

  func body() -> [UInt8] {
    var object: [String: JSONValue] = [
      "buckets": Self.json(buckets), "cursor": .string(cursor), "client_id": .string(clientID),
      "schema_version": .int(schemaVersion),
    ]
    object["limit"] = limit.map(JSONValue.int)
    return JSONWriter.data(.object(object))
  }
}
