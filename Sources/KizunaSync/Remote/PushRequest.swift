import HostKit

/// The arguments of `push` (Kizuna wire contract §5.1).
struct PushRequest: Equatable {
  var entries: [OutboxEntry]
  /// Always present; null when nothing was ever applied, because the function has no default for it.
  var lastMutationID: String?
  var clientID: String
  var schemaVersion: Int

  var isAtomic: Bool { entries.first?.group != nil }

  func body() -> [UInt8] {
    var writer = JSONWriter()
    writer.raw("{\"batch\":{\"atomic\":\(isAtomic),\"mutations\":")
    OutboxEntry.write(entries, to: &writer)
    writer.raw("},\"client_id\":")
    writer.write(string: clientID)
    writer.raw(",\"last_mutation_id\":")
    writer.write(.string(orNull: lastMutationID))
    writer.raw(",\"schema_version\":\(schemaVersion)}")
    return writer.bytes
  }
}
