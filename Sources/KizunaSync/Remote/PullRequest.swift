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
  /// Left out when nil: the request then says nothing of how far this client has come.
  var clientID: String?
  var schemaVersion: Int
  /// Left out when nil: the server's default holds.
  var limit: Int?

  static func json(_ bucket: Bucket) -> JSONValue {
    ["table": .string(bucket.table), "params": .object(bucket.params)]
  }

  static func json(_ buckets: [Bucket]) -> JSONValue { .array(buckets.map(json)) }

  func body() -> [UInt8] {
    var object: [String: JSONValue] = [
      "buckets": Self.json(buckets), "cursor": .string(cursor), "schema_version": .int(schemaVersion),
    ]
    object["client_id"] = clientID.map(JSONValue.string)
    object["limit"] = limit.map(JSONValue.int)
    return JSONWriter.data(.object(object))
  }
}
