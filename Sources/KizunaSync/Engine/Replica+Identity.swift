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
      try bareTransaction(sync: .normal, foreignKeys: false) {
        try database.setMeta(.owner, .text(subject))
        try database.setMeta(.adopting, .null)
      }
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

  /// Bucket values changed: answers under way and staged pages are for the old ones. That everything is read again follows
  /// from the next pull asking for something the cursor does not cover.
  func forgetTransfer() throws {
    try transaction {
      try raiseGeneration()
      try clearStaging()
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
