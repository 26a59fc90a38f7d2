import HostKit

/// The arguments of `pull` (Kizuna wire contract §4.1).
package struct PullRequest: Equatable, Sendable {
  package struct Bucket: Equatable, Sendable {
    var table: String
    /// Bucket column → value; empty for the whole table.
    var params: [String: JSONValue]

    package init(table: String, params: [String: JSONValue]) {
      self.table = table
      self.params = params
    }
  }

  var buckets: [Bucket]
  var cursor: String
  /// Left out when nil: the request then says nothing of how far this client has come.
  var clientID: String?
  var schemaVersion: Int
  /// Left out when nil: the server's default holds.
  var limit: Int?

  package init(buckets: [Bucket], cursor: String, clientID: String? = nil, schemaVersion: Int, limit: Int? = nil) {
    self.buckets = buckets
    self.cursor = cursor
    self.clientID = clientID
    self.schemaVersion = schemaVersion
    self.limit = limit
  }

  static func json(_ bucket: Bucket) -> JSONValue {
    ["table": .string(bucket.table), "params": .object(bucket.params)]
  }

  static func json(_ buckets: [Bucket]) -> JSONValue { .array(buckets.map(json)) }

  package func body() -> [UInt8] {
    var object: [String: JSONValue] = [
      "buckets": Self.json(buckets), "cursor": .string(cursor), "schema_version": .int(schemaVersion),
    ]
    object["client_id"] = clientID.map(JSONValue.string)
    object["limit"] = limit.map(JSONValue.int)
    return JSONWriter.data(.object(object))
  }
}
