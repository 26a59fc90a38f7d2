import HostKit

/// The names of the single values the replica remembers.
enum MetaKey: String {
  /// The durable pull cursor; missing means `0`.
  case cursor
  /// The cursor of an unfinished transfer.
  case pageCursor = "page_cursor"
  /// When the unfinished transfer began, milliseconds since 1970.
  case transferStarted = "transfer_started"
  /// Set while everything is read again from the start, see `Replica.Rehydration`.
  case rehydrating
  /// Set while somebody waits for a visibility sweep.
  case sweepAsked = "sweep_asked"
  /// When everything was last compared with what the server shows, milliseconds since 1970.
  case sweptAt = "swept_at"
  /// How many rows that sweep left although the server does not show them.
  case hiddenRowsKept = "hidden_rows_kept"
  /// By how many seconds the host's clock was ahead of the server's when that was last reported; missing when they agree.
  case clockOffset = "clock_offset"
  /// The signed-in user's id.
  case owner
  /// Rows an app's table held before wait in the journal for somebody to sign in, so that they get an owner.
  case adopting
  case clientID = "client_id"
  case lastMutationID = "last_mutation_id"
  /// State of the hybrid logical clock, `millis|counter|node`.
  case hlc
  /// Why sync is blocked, if it is.
  case softBlock = "soft_block"
  /// The newest journal row that reached the outbox.
  case harvested
  /// The tables and bucket values the durable cursor speaks for, as they were asked for.
  case covered
  /// The same of the unfinished transfer.
  case transferBuckets = "transfer_buckets"
  /// Names this copy of the file together with `machine`, see `InstanceCheck`.
  case instance
  case formerInstance = "former_instance"
  case machine
  /// When a run last ended well, milliseconds since 1970.
  case lastSync = "last_sync"
  /// The head of the queue and how often it was sent without a verdict, `seq|count`.
  case headTries = "head_tries"
  /// The head of the queue and since when it meets errors that may be its own fault, `seq|milliseconds since 1970`.
  case headTrouble = "head_trouble"
  /// Since when the unfinished transfer meets nothing but errors of the server, milliseconds since 1970.
  case transferTrouble = "transfer_trouble"
  /// The tables whose rows must be read again from the start, see `Rereads`.
  case reread
  /// When the file was last found to be a copy, milliseconds since 1970.
  case copiedAt = "copied_at"
  /// Columns of the server that an app's table lacks, a JSON array of `table.column`.
  case ignoredColumns = "ignored_columns"
  /// Why the tables cannot be followed as they are now, for people.
  case schemaProblem = "schema_problem"
  /// The tables that are set aside, a JSON object of reasons, see `SetAside`.
  case setAside = "set_aside"
  /// Tables that are not configured and of which writes wait, a JSON array, see `Replica.noteHeldWrites`.
  case held
  /// Where the newest all-or-nothing group began, see `GroupMark`.
  case groupMark = "group_mark"
  /// A random name of this file's journal, from which mutation ids follow, see `DerivedID`. A copy has it too.
  case journal
  case version
}

extension Database {
  func meta(_ key: MetaKey) throws -> SQLiteValue {
    try value("SELECT value FROM _kizunasync_meta WHERE key = ?", .text(key.rawValue)) ?? .null
  }

  /// How often the write with this number was sent without a verdict, if it is the head of the queue.
  func triesOfHead(_ seq: Int64) throws -> Int {
    let parts = try meta(.headTries).text?.split(separator: "|") ?? []
    return parts.count == 2 && Int64(parts[0]) == seq ? Int(parts[1]) ?? 0 : 0
  }

  /// Since when the write with this number meets errors that may be its own fault, if it is the head of the queue;
  /// milliseconds since 1970.
  func troubleOfHead(_ seq: Int64) throws -> Int64? {
    let parts = try meta(.headTrouble).text?.split(separator: "|") ?? []
    return parts.count == 2 && Int64(parts[0]) == seq ? Int64(parts[1]) : nil
  }

  func setMeta(_ key: MetaKey, _ value: SQLiteValue) throws {
    if value.isNull {
      try run("DELETE FROM _kizunasync_meta WHERE key = ?", .text(key.rawValue))
    } else {
      try run("INSERT OR REPLACE INTO _kizunasync_meta VALUES (?, ?)", .text(key.rawValue), value)
    }
  }

  /// Columns of the server that an app's table lacks, as `table.column`.
  func ignoredColumns() throws -> [String] {
    let text = try meta(.ignoredColumns).text
    return text.flatMap { try? JSONValue(parsing: $0) }?.arrayValue?.compactMap(\.stringValue) ?? []
  }

  func setIgnoredColumns(_ names: [String]) throws {
    let list = names.isEmpty ? nil : JSONWriter.text(.array(names.sorted().map(JSONValue.string)))
    try setMeta(.ignoredColumns, SQLiteValue(list))
  }
}
