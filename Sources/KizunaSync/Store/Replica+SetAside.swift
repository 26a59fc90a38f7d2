import CSQLite
import HostKit

/// Tables that are set aside: their rows are passed over, the cursor and the other tables go on, and what they missed is
/// read again when the cause is gone.
///
/// Their local writes are captured and sent as ever; only the replica writes nothing into them.
extension Replica {
  /// After a row was the cause; doubled with every failure in a row.
  static let firstRetry: UInt64 = .seconds(300)
  static let longestRetry: UInt64 = .seconds(3600)

  // MARK: Writing

  /// Runs a statement that changes rows of a synced table.
  /// - Returns: false when the table is set aside; nothing is run then.
  /// - Throws: `SQLiteError` for what concerns this statement alone, `TableFailure` when the transaction is undone.
  @discardableResult
  func change(_ layout: TableLayout, _ sql: String, _ arguments: [SQLiteValue]) throws -> Bool {
    guard setAside[layout.name] == nil else { return false }
    do {
      try database.run(sql, arguments)
    } catch let error as SQLiteError {
      throw judged(error, layout.name)
    }
    return true
  }

  /// The same where a row that something in the database protects stays as it is.
  /// - Returns: whether it was done.
  @discardableResult
  func changeIfAllowed(_ layout: TableLayout, _ sql: String, _ arguments: [SQLiteValue]) throws -> Bool {
    do {
      return try change(layout, sql, arguments)
    } catch let error as SQLiteError where isRefusal(error) {
      return false
    }
  }

  /// What SQLite said of a statement in a transaction.
  func judged(_ error: SQLiteError, _ table: String) -> any Error {
    error.isOfTheRow && !database.isInTransaction ? TableFailure(table: table, error: error) : error
  }

  /// The row does not fit, and the transaction can go on without it.
  func isRefusal(_ error: SQLiteError) -> Bool { error.isOfTheRow && database.isInTransaction }

  // MARK: Setting aside

  /// A row was the cause. What was undone is done again without the table.
  func setAside(_ failure: TableFailure) {
    let table = failure.table
    let count = failures[table, default: 0]
    failures[table] = count + 1
    let delay = min(Self.firstRetry << UInt64(min(count, 10)), Self.longestRetry)
    setAside[table] = SetAside(
      reason: describe(failure), retry: SetAside.Retry(cookie: nil, at: clock.now + delay))
    report(table)
  }

  var isRetryDue: Bool {
    setAside.values.contains { $0.retry.map { clock.now >= $0.at } ?? false }
  }

  /// Decides anew which tables are set aside, after the schema was looked at. Inside a transaction.
  /// - Parameter problems: of tables that do not fit their configuration.
  func decideWhatIsSetAside(_ problems: [String: String]) throws {
    let cookie = try readSchemaCookie()
    for table in settings.tables.keys.sorted() {
      if let reason = try problems[table] ?? reasonToRefuse(table) {
        setAside[table] = SetAside(reason: reason, retry: nil)
        report(table)
      } else if let aside = setAside[table] {
        if let retry = aside.retry, retry.cookie ?? cookie == cookie, clock.now < retry.at {
          setAside[table]?.retry?.cookie = cookie
        } else {
          setAside[table] = nil
          reportedAside[table] = nil
          log.info("store.table_taken_up", ["table": .string(table)])
        }
      }
    }
    try noteSetAside()
  }

  /// Leaves word for `status`, and for the time after: what is passed over now must be read then.
  func noteSetAside() throws {
    if !setAside.isEmpty {
      try changeRereads { rereads in
        for table in setAside.keys { rereads.fallBehind(table) }
      }
    }
    let reasons = setAside.mapValues { JSONValue.string($0.reason) }
    let text = SQLiteValue(setAside.isEmpty ? nil : JSONWriter.text(.object(reasons)))
    if try database.meta(.setAside) != text { try database.setMeta(.setAside, text) }
  }

  private func report(_ table: String) {
    guard let reason = setAside[table]?.reason, reportedAside[table] != reason else { return }
    reportedAside[table] = reason
    log.error("store.table_set_aside", ["table": .string(table), "reason": .string(reason)])
  }

  // MARK: Reasons

  /// SQLite compiles a table's triggers, checks and indexes with every statement that changes its rows.
  private func reasonToRefuse(_ table: String) throws -> String? {
    guard let layout = layouts[table] else { return nil }
    do {
      for sql in [layout.upsert, layout.deleteRow, layout.moveKey] { try database.compile(sql) }
      return nil
    } catch let error as SQLiteError where error.primaryCode == SQLITE_ERROR {
      return describe(compiling: error, table)
    }
  }

  private func describe(compiling error: SQLiteError, _ table: String) -> String {
    let lacks = ", which the database lacks"
    let unknown = ", which only the program that defines it has"
    let what: [(prefix: String, noun: String, why: String)] = [
      ("no such table: ", "table", lacks), ("no such column: ", "column", lacks),
      ("no such function: ", "function", unknown), ("unknown function: ", "function", unknown),
      ("no such collation sequence: ", "collation", unknown),
    ]
    for (prefix, noun, why) in what where error.message.hasPrefix(prefix) {
      var name = String(error.message.dropFirst(prefix.count))
      if name.hasPrefix("main.") { name.removeFirst("main.".count) }
      if name.hasSuffix("()") { name.removeLast(2) }
      let culprit = culprit(naming: name, table) ?? "a trigger, an index or the declaration of \(table)"
      let remedy =
        why == lacks ? "put the \(noun) \(name) back, or correct what needs it" : "take it out, or do without it there"
      return "no row of \(table) can be written: \(culprit) needs the \(noun) \(name)\(why); \(remedy)"
        + Self.ending(table)
    }
    return "no row of \(table) can be written (\(error.message)); correct its triggers, indexes and declaration"
      + Self.ending(table)
  }

  private func describe(_ failure: TableFailure) -> String {
    let table = failure.table
    if let reason = failure.reason { return reason + Self.ending(table) }
    let says = (failure.error as? SQLiteError)?.message ?? "nothing"
    let culprit = culprit(naming: "rollback", table) ?? "a trigger or constraint"
    return
      "\(culprit) refused a row of \(table) by undoing the whole transaction (it says: \(says)); let it use ABORT instead of ROLLBACK, which refuses that row alone"
      + Self.ending(table)
  }

  private static func ending(_ table: String) -> String {
    ". The other tables go on, and \(table) is read again from the server when this is put right"
  }

  /// What in the schema names a thing: a trigger, an index, or the table's own declaration.
  private func culprit(naming name: String, _ table: String) -> String? {
    let found = try? database.first(
      "SELECT type, name, tbl_name FROM sqlite_schema WHERE instr(lower(sql), lower(?2)) > 0 "
        + "AND (type = 'trigger' OR tbl_name = ?1 COLLATE NOCASE) AND substr(name, 1, 12) <> ?3 "
        + "ORDER BY tbl_name <> ?1 COLLATE NOCASE, type <> 'trigger', type <> 'index' LIMIT 1",
      [.text(table), .text(name), .text(Schema.prefix)]
    ) { (type: $0.string(0), name: $0.string(1), table: $0.string(2)) }
    guard let found else { return nil }
    switch found.type {
    case "table": return "the declaration of the table \(found.name)"
    case "view": return "the view \(found.name)"
    default: return "the \(found.type) \(found.name) on \(found.table)"
    }
  }
}

extension Database {
  /// The tables that are set aside, with the reasons.
  func tablesSetAside() throws -> [String: String] {
    let text = try meta(.setAside).text
    return text.flatMap { try? JSONValue(parsing: $0) }?.objectValue?.compactMapValues(\.stringValue) ?? [:]
  }
}
