import HostKit

/// The payload of a `phx_join`, read as leniently as the server does (Realtime wire contract §4).
struct JoinRequest: Equatable {
  var isPrivate = false
  var acknowledges = false
  var receivesOwn = false
  var wantsReplicationReady = false
  var presenceEnabled = false
  var replay: JSONValue?
  var postgresChanges: [JSONValue] = []
  var accessToken: String?
  /// Without `config` the server reads a table out of the topic.
  var isLegacy = false

  /// A payload on which the server's own code fails (recorded: `config.broadcast` of a wrong type).
  struct Unreadable: Error, Equatable {}

  init(_ payload: JSONValue) throws(Unreadable) {
    accessToken = payload["access_token"]?.stringValue ?? payload["user_token"]?.stringValue
    guard let config = payload["config"] else {
      isLegacy = true
      return
    }
    guard config.objectValue != nil else { throw Unreadable() }
    isPrivate = Self.flag(config["private"])
    if let broadcast = config["broadcast"], !broadcast.isNull {
      guard broadcast.objectValue != nil else { throw Unreadable() }
      acknowledges = Self.flag(broadcast["ack"])
      receivesOwn = Self.flag(broadcast["self"])
      wantsReplicationReady = Self.flag(broadcast["replication_ready"])
      replay = broadcast["replay"]
    }
    presenceEnabled = Self.flag(config["presence"]?["enabled"])
    postgresChanges = config["postgres_changes"]?.arrayValue ?? []
  }

  /// Booleans may be texts.
  private static func flag(_ value: JSONValue?) -> Bool {
    value?.boolValue ?? (value?.stringValue?.lowercased() == "true")
  }
}
