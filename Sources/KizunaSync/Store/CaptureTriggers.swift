import HostKit

/// The triggers that journal every change of a synced table, in whatever process and by whatever statement it is made.
///
/// They touch only `capture`, `displaced` and `ctl`, and use no function that can fail on a value, so they never make a
/// write fail that would have succeeded.
///
/// The difficulty is displacement: `INSERT OR REPLACE` and `UPDATE OR REPLACE` delete rows silently where
/// `recursive_triggers` is off, which is the default everywhere. BEFORE triggers note the rows that share a unique value
/// with the new one. `OR IGNORE`, `DO NOTHING` and `DO UPDATE` fire them too and displace nothing; what became of a noted
/// row the harvest finds out, see `NotedRows`.
///
/// The usual write must be cheap, because its writer waits for it. What a trigger costs is the tables it opens, and in a
/// statement that writes one row also the size of its program. So the AFTER triggers write one journal row and look at
/// nothing: whether the gateway is applying is known to a trigger of its own connection (`Schema.silence`), and
/// which rows belong together to rows of the journal (`Schema.groupTriggers`).
///
/// Operations in the journal: `i` insert, also over the row of its own key, `u` update, `m` an update that moved the row
/// to another key, `d` delete, `b` from here on the writes belong to the group `grp`, or to none. Whether a moved row is
/// another row is for the harvest to say: `7` and `'7'` are two keys to SQLite and one to the server.
struct CaptureTriggers {
  /// A column and the number its values have in the journal.
  struct Column {
    var name: String
    var slot: Int
  }

  /// Columns of a uniqueness constraint, each with the collation that decides equality.
  struct UniqueSet: Equatable {
    struct Member: Equatable {
      var column: String
      var collation = "BINARY"
    }

    var members: [Member]
    /// It binds some rows only.
    var isPartial = false
  }

  var table: String
  var columns: [Column]
  var key: [String]
  /// The primary key's set and those of all other unique indexes.
  var uniqueSets: [UniqueSet]
  /// The table cascades onto itself, directly or through others.
  var isSelfReferencing = false
  var refusesWrites = false
  var refusesDeletes = false

  struct Trigger: Equatable {
    var name: String
    var sql: String
  }

  static func namePrefix(table: String) -> String { "\(Schema.prefix)\(table)_" }

  func triggers() -> [Trigger] {
    if refusesWrites { return refusing("\(table) is pull-only, its rows come from the server") }
    let list = [beforeInsert, afterInsert, beforeUpdate, afterUpdate, afterDelete]
    return refusesDeletes ? list + softDeleteTriggers : list
  }

  /// While capture is off: no write can go unseen. They name no column, so that every column may be altered or dropped.
  func triggersWhileOff() -> [Trigger] {
    refusing("capture of \(table) \(Self.offWords); kizuna-doorbell capture on ends that")
  }

  /// What tells these triggers from those of a pull-only table.
  static let offWords = "is off, so that its columns can change"

  private func refusing(_ reason: String) -> [Trigger] {
    ["insert", "update", "delete"].map { verb in
      trigger(when: "before", verb, active, "SELECT raise(ABORT, \(SQL.literal("\(verb) refused: \(reason)")));")
    }
  }

  // MARK: Parts

  private let active = "(SELECT applying FROM _kizunasync_ctl) = 0"
  private var name: String { SQL.name(table) }
  private var tag: String { SQL.literal(table) }
  private var softDeleteMessage: String {
    "delete refused: rows of \(table) are marked deleted through its soft-delete column"
  }

  private var newSlots: String { columns.map { "n\($0.slot)" }.joined(separator: ", ") }
  private var oldSlots: String { columns.map { "o\($0.slot)" }.joined(separator: ", ") }
  private var notedSlots: String { columns.map { "c\($0.slot)" }.joined(separator: ", ") }
  private var newValues: String { SQL.names(columns.map(\.name), prefix: "NEW.") }
  private var oldValues: String { SQL.names(columns.map(\.name), prefix: "OLD.") }

  private func slot(_ column: String) -> Int { columns.first { $0.name == column }?.slot ?? 0 }

  private func trigger(
    when: String, _ verb: String, suffix: String = "", _ condition: String?, _ body: String
  ) -> Trigger {
    let triggerName = "\(Self.namePrefix(table: table))\(when)_\(verb)\(suffix)"
    return Trigger(
      name: triggerName,
      sql: "CREATE TRIGGER \(SQL.name(triggerName)) \(when.uppercased()) \(verb.uppercased()) ON \(name) "
        + (condition.map { "WHEN \($0) " } ?? "") + "BEGIN \(body) END")
  }

  /// A row `t` of the table shares a unique value with NEW.
  private var sharesUniqueValue: String { "(" + SQL.chain(uniqueSets.map(isShared), "OR") + ")" }

  private func isShared(_ set: UniqueSet) -> String {
    let terms = set.members.map { member in
      "t.\(SQL.name(member.column)) COLLATE \(SQL.name(member.collation)) = NEW.\(SQL.name(member.column))"
    }
    return "(" + SQL.chain(terms, "AND") + ")"
  }

  /// The same of any row, as a condition of its own. For a lone column SQLite looks into the index without a loop.
  private var somethingSharesUniqueValue: String {
    let terms = uniqueSets.map { set in
      guard set.members.count == 1, !set.isPartial, let member = set.members.first else {
        return "EXISTS (SELECT 1 FROM \(name) t WHERE \(isShared(set)))"
      }
      let column = SQL.name(member.column)
      return "NEW.\(column) COLLATE \(SQL.name(member.collation)) IN (SELECT \(column) FROM \(name))"
    }
    return "(" + SQL.chain(terms, "OR") + ")"
  }

  private func keyIs(_ left: String, _ right: String) -> String {
    "(" + SQL.chain(key.map { "\(left).\(SQL.name($0)) IS \(right).\(SQL.name($0))" }, "AND") + ")"
  }

  private var uniqueColumnChanged: String {
    // A row may come under a partial index by any column. A self-referencing table refuses what it finds, so it must not
    // take another row that the index does not bind for one in the way.
    if !isSelfReferencing, uniqueSets.contains(where: \.isPartial) { return "1" }
    let names = Set(uniqueSets.flatMap { $0.members.map(\.column) }).sorted()
    return "(" + SQL.chain(names.map { "NEW.\(SQL.name($0)) IS NOT OLD.\(SQL.name($0))" }, "OR") + ")"
  }

  private func log(_ op: String, into slots: String, _ values: String) -> String {
    "INSERT INTO _kizunasync_capture(tbl, op, at, \(slots)) VALUES (\(tag), \(op), julianday(), \(values));"
  }

  /// Notes the rows that this statement may displace.
  ///
  /// Notes after which nothing was journalled were mostly in vain, and a program that is always ignored must not pile them
  /// up. The newest few stay: an app's trigger may write to the table while a statement is in the middle of a row.
  private func note(_ condition: String) -> String {
    let newest = "coalesce((SELECT max(seq) FROM _kizunasync_capture), 0)"
    let last = "(SELECT max(rowid) FROM _kizunasync_displaced)"
    return noteNoneTwice(condition, newest, last)
      + "DELETE FROM _kizunasync_displaced WHERE base_seq = \(newest) "
      + "AND rowid BETWEEN \(last) - 24 AND \(last) - 8; "
      + "INSERT INTO _kizunasync_displaced(base_seq, tbl, \(notedSlots)) "
      + "SELECT \(newest), \(tag), \(SQL.names(columns.map(\.name), prefix: "t.")) FROM \(name) t WHERE \(condition);"
  }

  /// Of a partial index any number of rows may be noted for one write, each time again where it is in vain.
  private func noteNoneTwice(_ condition: String, _ newest: String, _ last: String) -> String {
    guard uniqueSets.contains(where: \.isPartial) else { return "" }
    let sameKey = key.map { "_kizunasync_displaced.c\(slot($0)) IS t.\(SQL.name($0))" }
    return "DELETE FROM _kizunasync_displaced WHERE rowid > \(last) - 2000 AND base_seq = \(newest) AND tbl = \(tag) "
      + "AND EXISTS (SELECT 1 FROM \(name) t WHERE \(SQL.chain(sameKey, "AND")) AND \(condition)); "
  }

  /// A key that can be spelled on the wire. Texts stand between numbers and blobs in SQLite's order, and comparing is
  /// cheaper than asking for the type.
  private var isGoodKey: String {
    let least = key.count == 1 ? ">" : ">="
    let good = key.map { column in
      let cell = "NEW.\(SQL.name(column))"
      return "(\(cell) COLLATE BINARY \(least) '' AND \(cell) < x'' OR typeof(\(cell)) = 'integer')"
    }
    return "(" + SQL.chain(good, "AND") + ")"
  }

  /// Refused here, because later nobody could tell the writer.
  private var badKey: String {
    let message = "the key of \(table) (\(key.joined(separator: ", "))) must be text or an integer, and not empty"
    return "raise(ABORT, \(SQL.literal(message)))"
  }

  // MARK: The triggers

  private var beforeInsert: Trigger {
    trigger(when: "before", "insert", "\(somethingSharesUniqueValue) AND \(active)", note(sharesUniqueValue))
  }

  private var afterInsert: Trigger {
    let op = "CASE WHEN \(isGoodKey) OR NOT \(active) THEN 'i' ELSE \(badKey) END"
    return trigger(when: "after", "insert", nil, log(op, into: newSlots, newValues))
  }

  private var beforeUpdate: Trigger {
    let other = "\(sharesUniqueValue) AND NOT \(keyIs("t", "OLD"))"
    let condition = "\(uniqueColumnChanged) AND EXISTS (SELECT 1 FROM \(name) t WHERE \(other)) AND \(active)"
    guard isSelfReferencing else { return trigger(when: "before", "update", condition, note(other)) }
    // An update that displaces an ancestor of its own row would cascade onto the row itself, unseen by any trigger.
    let message =
      "update refused: it would displace another row of \(table), which cascades onto itself; delete that row first"
    return trigger(when: "before", "update", condition, "SELECT raise(ABORT, \(SQL.literal(message)));")
  }

  private var afterUpdate: Trigger {
    let op = "CASE WHEN \(keyIs("NEW", "OLD")) THEN 'u' WHEN \(isGoodKey) OR NOT \(active) THEN 'm' ELSE \(badKey) END"
    return trigger(
      when: "after", "update", nil, log(op, into: "\(newSlots), \(oldSlots)", "\(newValues), \(oldValues)"))
  }

  private var afterDelete: Trigger {
    trigger(when: "after", "delete", nil, log("'d'", into: oldSlots, oldValues))
  }

  /// Rows of such a table are never deleted, nor displaced by another row, nor given another key.
  private var softDeleteTriggers: [Trigger] {
    let refuse = "SELECT raise(ABORT, \(SQL.literal(softDeleteMessage)))"
    let isNoted = "EXISTS (SELECT 1 FROM _kizunasync_displaced WHERE tbl = \(tag)) AND \(active)"
    let newest = "(SELECT max(base_seq) FROM _kizunasync_displaced WHERE tbl = \(tag))"
    let sameKey = SQL.chain(key.map { "d.c\(slot($0)) IS t.\(SQL.name($0))" }, "AND")
    let displaced =
      "\(refuse) WHERE EXISTS (SELECT 1 FROM _kizunasync_displaced d WHERE d.tbl = \(tag) AND d.base_seq = \(newest) "
      + "AND NOT EXISTS (SELECT 1 FROM \(name) t WHERE \(sameKey)));"
    let message = "update refused: the key of a row of \(table) cannot change, because its rows are never deleted"
    return [
      trigger(when: "before", "delete", active, refuse + ";"),
      trigger(when: "after", "insert", suffix: "_displacing", isNoted, displaced),
      trigger(when: "after", "update", suffix: "_displacing", isNoted, displaced),
      trigger(
        when: "after", "update", suffix: "_moving", "NOT \(keyIs("NEW", "OLD")) AND \(active)",
        "SELECT raise(ABORT, \(SQL.literal(message)));"),
    ]
  }

  /// Reads the columns and their slots from the text of an after_delete trigger, which names each of them once.
  /// - Returns: nil for another text.
  static func columns(in afterDelete: String) -> [Column]? {
    guard let slots = afterDelete.firstRange(of: "_kizunasync_capture(tbl, op, "),
      let slotsEnd = afterDelete[slots.upperBound...].firstIndex(of: ")"),
      let valuesBegin = afterDelete[slotsEnd...].firstRange(of: "julianday(), ")
    else { return nil }
    // Others are `grp` and `at`.
    let numbers = afterDelete[slots.upperBound..<slotsEnd].split(separator: ", ").filter { $0.hasPrefix("o") }
      .map { Int($0.dropFirst()) }
    var names: [String] = []
    var rest = afterDelete[valuesBegin.upperBound...]
    while rest.hasPrefix("OLD."), let name = SQL.readName(&rest, after: "OLD.") {
      names.append(name)
      if rest.hasPrefix(", ") { rest = rest.dropFirst(2) }
    }
    guard rest.hasPrefix(");") || rest.hasPrefix(";"), names.count == numbers.count else { return nil }
    var columns: [Column] = []
    for (name, number) in zip(names, numbers) {
      guard let number else { return nil }
      columns.append(Column(name: name, slot: number))
    }
    return columns
  }

  init(
    table: String, columns: [Column], key: [String], uniqueSets: [UniqueSet], isSelfReferencing: Bool = false,
    refusesWrites: Bool = false, refusesDeletes: Bool = false
  ) {
    self.table = table
    self.columns = columns
    self.key = key
    self.uniqueSets = uniqueSets
    self.isSelfReferencing = isSelfReferencing
    self.refusesWrites = refusesWrites
    self.refusesDeletes = refusesDeletes
  }
}
