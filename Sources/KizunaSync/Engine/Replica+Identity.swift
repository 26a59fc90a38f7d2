import HostKit

/// Who the replica belongs to, which buckets it holds, and T6, the reset.
extension Replica {
  enum OwnerChange: Equatable {
    case none, learned, refused
  }

  /// The first user's id becomes the owner for good; another one blocks sync until a reset.
  func meet(owner subject: String) throws -> OwnerChange {
    let known = try database.meta(.owner).text
    if known == subject { return .none }
    if known == nil {
      try bareTransaction(sync: .normal, foreignKeys: false) { try database.setMeta(.owner, .text(subject)) }
      return .learned
    }
    guard try database.meta(.softBlock).text != "identity_changed" else { return .none }
    try transaction {
      try raiseGeneration()
      try clearStaging()
      try database.setMeta(.softBlock, "identity_changed")
    }
    return .refused
  }

  /// Remembers which bucket values the rows belong to. Other values than before mean that everything is read again, and
  /// that answers under way are for the old ones.
  func setBucketScope(_ values: [String: JSONValue]) throws {
    let scope = JSONWriter.text(.object(values))
    let before = try database.meta(.bucketScope).text
    guard before != scope else { return }
    let earlier = (before.flatMap { try? JSONValue(parsing: $0) })?.objectValue ?? [:]
    let isChanged = values.contains { earlier[$0.key] != nil && earlier[$0.key] != $0.value }
    let hasState = try database.meta(.cursor) != .null && database.meta(.cursor) != "0"
    try transaction {
      try database.setMeta(.bucketScope, .text(scope))
      guard isChanged || (hasState && !values.allSatisfy { earlier[$0.key] == $0.value }) else { return }
      try raiseGeneration()
      try clearStaging()
      try database.setMeta(.rehydrating, 1)
    }
  }

  /// Sets the durable cursor without pulling.
  func seed(cursor: String) throws {
    try transaction {
      try raiseGeneration()
      try clearStaging()
      try database.setMeta(.cursor, .text(cursor))
    }
  }

  /// A file that was copied to another host must not go on as the same client: it gets a new client id. Queued writes keep
  /// their ids.
  func recogniseMachine(_ machine: String? = MachineID.read()) throws {
    guard let machine else { return }
    let known = try database.meta(.machine).text
    guard known != machine else { return }
    try bareTransaction(sync: .normal, foreignKeys: false) {
      try database.setMeta(.machine, .text(machine))
      if known != nil { try database.setMeta(.clientID, .text(RandomUUID.make())) }
    }
    if known != nil { log.warning("store.copied_from_another_host") }
  }

  /// T6: an empty replica of nobody, with a new client id. The hybrid clock goes on, and journal numbers are not reused.
  func reset() throws {
    try transaction(sync: .full, applying: true) {
      for table in layouts.values { try database.run("DELETE FROM \(table.quoted)") }
      for table in ["outbox", "image", "pages", "absent", "parked", "pushed", "rejections", "overwrites"] {
        try database.run("DELETE FROM \(Schema.prefix)\(table)")
      }
      try database.run(
        "DELETE FROM _kizunasync_meta WHERE key NOT IN ('hlc', 'harvested', 'version', 'instance', 'machine')")
      try database.setMeta(.clientID, .text(RandomUUID.make()))
      try raiseGeneration()
    }
  }
}
