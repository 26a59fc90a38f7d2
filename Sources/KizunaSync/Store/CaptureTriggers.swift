import HostKit

/// The triggers that journal every change of a synced table, in whatever process and by whatever statement it is made.
///
/// They touch only `capture`, `displaced`, `group` and `ctl`, and use no function that can fail on a value, so they never
/// make a write fail that would have succeeded.
///
/// The difficulty is displacement: `INSERT OR REPLACE` and `UPDATE OR REPLACE` delete rows silently where
/// `recursive_triggers` is off, which is the default everywhere. BEFORE triggers note the rows that might go, AFTER
/// triggers log those that went and were not logged otherwise. `OR IGNORE`, `DO NOTHING` and `DO UPDATE` fire the BEFORE
/// trigger too; nothing is deleted there and nothing is logged.
///
/// The usual write must be cheap: what a trigger costs is mostly the tables it opens. So everything unusual (noted rows, a
/// gateway transaction, an open group) is a row of `displaced`, and the trigger of the usual write looks only there.
///
/// Operations in the journal: `i` insert, `u` update, `r` an insert that replaced the row of its own key, `m` an update
/// that moved the row to another key, `d` delete. Whether a moved row is another row is for the harvest to say: `7` and
/// `'7'` are two keys to SQLite and one to the server.
struct CaptureTriggers {
  /// A column and the number its values have in the journal.
  struct Column {
    var name: String
    var slot: Int
  }

  /// Columns of a uniqueness constraint, each with the collation that decides equality.
  typealias UniqueSet = [(column: String, collation: String)]

  var table: String
  var columns: [Column]
  var key: [String]
  /// The primary key's set and those of all other unique indexes.
  var uniqueSets: [UniqueSet]
  /// What NOT NULL columns take for NULL under `OR REPLACE`: constants, as SQL.
  var defaults: [String: String] = [:]
  /// The name of the row id where it is no column: a row is displaced by its number too. Nil in tables without.
  var rowID: String?
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
    var list = [
      beforeInsert, afterPlainInsert, afterDisplacingInsert, beforeUpdate, afterPlainUpdate, afterDisplacingUpdate,
      afterDelete,
    ]
    if refusesDeletes {
      list.append(
        trigger(when: "before", "delete", active, "SELECT raise(ABORT, \(SQL.literal(softDeleteMessage)));"))
    }
    return list
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
  /// There are noted rows of the table, or one of the marks of `Schema.Mark`, which belong to no table.
  private var isUnusual: String {
    "EXISTS (SELECT 1 FROM _kizunasync_displaced WHERE ifnull(tbl, \(tag)) = \(tag))"
  }
  private var name: String { SQL.name(table) }
  private var tag: String { SQL.literal(table) }
  private var softDeleteMessage: String {
    "delete refused: rows of \(table) are marked deleted through its soft-delete column"
  }
  private var dropNotes: String { "DELETE FROM _kizunasync_displaced WHERE tbl = \(tag);" }

  private var newSlots: String { columns.map { "n\($0.slot)" }.joined(separator: ", ") }
  private var oldSlots: String { columns.map { "o\($0.slot)" }.joined(separator: ", ") }
  private var notedSlots: String { columns.map { "c\($0.slot)" }.joined(separator: ", ") }
  private var newValues: String { SQL.names(columns.map(\.name), prefix: "NEW.") }
  private var oldValues: String { SQL.names(columns.map(\.name), prefix: "OLD.") }
  private var noted: String { columns.map { "d.c\($0.slot)" }.joined(separator: ", ") }

  private func slot(_ column: String) -> Int { columns.first { $0.name == column }?.slot ?? 0 }

  private func trigger(
    when: String, _ verb: String, suffix: String = "", _ condition: String, _ body: String
  ) -> Trigger {
    let triggerName = "\(Self.namePrefix(table: table))\(when)_\(verb)\(suffix)"
    return Trigger(
      name: triggerName,
      sql: "CREATE TRIGGER \(SQL.name(triggerName)) \(when.uppercased()) \(verb.uppercased()) ON \(name) "
        + "WHEN \(condition) BEGIN \(body) END")
  }

  /// A row of the table that shares a unique value with NEW.
  private var sharesUniqueValue: String { "(" + SQL.chain(uniqueSets.map(sharesValue), "OR") + ")" }

  private func sharesValue(_ set: UniqueSet) -> String {
    let columns = set.map {
      "t.\(SQL.name($0.column)) COLLATE \(SQL.name($0.collation)) = \(newValue($0.column))"
    }
    return "(" + SQL.chain(columns, "AND") + ")"
  }

  /// Whether rows displaced by a unique index went unseen, because the triggers were made before it.
  /// - Parameter beforeInsert: the text of that trigger as it is in the database.
  func isUnseenIndex(in beforeInsert: String) -> Bool {
    uniqueSets.contains { !beforeInsert.contains(sharesValue($0)) }
  }

  private func newValue(_ column: String) -> String {
    let value = "NEW.\(SQL.name(column))"
    return defaults[column].map { "coalesce(\(value), \($0))" } ?? value
  }

  /// A row of the table that an insert or a change of the row id would displace. Apart from the unique values, because the
  /// usual write names no row id, and one term of two is faster than either of two.
  private var sharesRowID: String? {
    rowID.map { "t.\($0) = NEW.\($0)" }
  }

  private func displaceable(_ condition: String) -> String {
    sharesRowID.map { "(\(condition) OR \($0))" } ?? condition
  }

  private func keyIs(_ left: String, _ right: String) -> String {
    "(" + SQL.chain(key.map { "\(left).\(SQL.name($0)) IS \(right).\(SQL.name($0))" }, "AND") + ")"
  }

  /// The key of a noted row (`d`) equals that of a table row or of NEW.
  private func notedKeyIs(_ right: String) -> String {
    "(" + SQL.chain(key.map { "d.c\(slot($0)) IS \(right).\(SQL.name($0))" }, "AND") + ")"
  }

  private var uniqueColumnChanged: String {
    let names = Set(uniqueSets.flatMap { $0.map(\.column) }).sorted()
    return "(" + SQL.chain(names.map { "NEW.\(SQL.name($0)) IS NOT OLD.\(SQL.name($0))" }, "OR") + ")"
  }

  /// The noted row has a delete in the journal since it was noted (`recursive_triggers` was on, or a cascade took it).
  private var isLogged: String {
    let sameKey = SQL.chain(key.map { "j.o\(slot($0)) IS d.c\(slot($0))" }, "AND")
    return
      "EXISTS (SELECT 1 FROM _kizunasync_capture j WHERE j.seq > d.base_seq AND j.op IN ('d', 'm') AND j.tbl = \(tag) "
      + "AND \(sameKey))"
  }

  private func log(_ op: String, into slots: String, _ select: String) -> String {
    "INSERT INTO _kizunasync_capture(tbl, op, grp, at, \(slots)) SELECT \(tag), '\(op)', "
      + "(SELECT id FROM _kizunasync_group), julianday(), \(select);"
  }

  /// The same of a usual write, which is in no group.
  private func logUsual(_ op: String, into slots: String, _ values: String) -> String {
    "INSERT INTO _kizunasync_capture(tbl, op, at, \(slots)) VALUES (\(tag), '\(op)', julianday(), \(values));"
  }

  /// Forgets what an earlier statement noted, and notes the rows that this one may displace.
  private func note(_ condition: String) -> String {
    "\(dropNotes) INSERT INTO _kizunasync_displaced(base_seq, tbl, \(notedSlots)) "
      + "SELECT coalesce((SELECT max(seq) FROM _kizunasync_capture), 0), \(tag), "
      + "\(SQL.names(columns.map(\.name), prefix: "t.")) FROM \(name) t WHERE \(condition);"
  }

  private var gone: String {
    "NOT EXISTS (SELECT 1 FROM \(name) t WHERE \(notedKeyIs("t"))) AND NOT \(notedKeyIs("NEW"))"
  }

  /// Logs, or on a soft-delete table refuses, the rows that were displaced by a row of another key.
  private var logDisplaced: String {
    let which = "_kizunasync_displaced d WHERE d.tbl = \(tag) AND \(gone) AND NOT \(isLogged)"
    if refusesDeletes {
      return "SELECT raise(ABORT, \(SQL.literal(softDeleteMessage))) WHERE EXISTS (SELECT 1 FROM \(which));"
    }
    return log("d", into: oldSlots, "\(noted) FROM \(which)")
  }

  /// A key that cannot be spelled on the wire. Texts stand between numbers and blobs in SQLite's order, and comparing is
  /// cheaper than asking for the type.
  private var isBadKey: String {
    let least = key.count == 1 ? ">" : ">="
    let good = key.map { column in
      let cell = "NEW.\(SQL.name(column))"
      return "(\(cell) COLLATE BINARY \(least) '' AND \(cell) < x'' OR typeof(\(cell)) = 'integer')"
    }
    return "((" + SQL.chain(good, "AND") + ") IS NOT TRUE)"
  }

  /// Refused here, because later nobody could tell the writer.
  private var checkKey: String {
    let message = "the key of \(table) (\(key.joined(separator: ", "))) must be text or an integer, and not empty"
    return "SELECT raise(ABORT, \(SQL.literal(message))) WHERE \(isBadKey);"
  }

  // MARK: The triggers

  // The usual write displaces nothing and pays for one insert into the journal. The rest has triggers of its own, whose
  // conditions exclude the usual one's: SQLite does not say which of two fires first, so neither may change what the
  // other looks at. Notes are therefore dropped by the next BEFORE trigger only. Cheap tests stand first. A key that is
  // refused is refused by the other trigger, whatever the usual one did before: the statement is undone.

  private var beforeInsert: Trigger {
    // Before an insert the row id is -1 where none was given.
    let isNumbered = rowID.map {
      " OR NEW.\($0) <> -1 AND EXISTS (SELECT 1 FROM \(name) t WHERE t.\($0) = NEW.\($0))"
    }
    return trigger(
      when: "before", "insert",
      "(EXISTS (SELECT 1 FROM \(name) t WHERE \(sharesUniqueValue))\(isNumbered ?? "") OR \(isUnusual)) AND \(active)",
      note(displaceable(sharesUniqueValue)))
  }

  private var afterPlainInsert: Trigger {
    trigger(when: "after", "insert", "NOT \(isUnusual)", logUsual("i", into: newSlots, newValues))
  }

  private var afterDisplacingInsert: Trigger {
    let own = "_kizunasync_displaced d WHERE d.tbl = \(tag) AND \(notedKeyIs("NEW")) AND NOT \(isLogged)"
    return trigger(
      when: "after", "insert", suffix: "_displacing", "(\(isUnusual) OR \(isBadKey)) AND \(active)",
      [
        checkKey, logDisplaced,
        log("r", into: "\(newSlots), \(oldSlots)", "\(newValues), \(noted) FROM \(own)"),
        log("i", into: newSlots, "\(newValues) WHERE NOT EXISTS (SELECT 1 FROM \(own))"),
      ].joined(separator: " "))
  }

  private var beforeUpdate: Trigger {
    let other = "\(displaceable(sharesUniqueValue)) AND NOT \(keyIs("t", "OLD"))"
    let isRenumbered = rowID.map { "NEW.\($0) <> OLD.\($0)" }
    let changes = "(" + SQL.chain([uniqueColumnChanged] + [isRenumbered].compactMap(\.self), "OR") + ")"
    let displaces = "\(changes) AND EXISTS (SELECT 1 FROM \(name) t WHERE \(other))"
    let condition = "((\(displaces)) OR \(isUnusual)) AND \(active)"
    guard isSelfReferencing else { return trigger(when: "before", "update", condition, note(other)) }
    // An update that displaces an ancestor of its own row would cascade onto the row itself, unseen by any trigger.
    let message =
      "update refused: it would displace another row of \(table), which cascades onto itself; delete that row first"
    return trigger(
      when: "before", "update", condition,
      "SELECT raise(ABORT, \(SQL.literal(message))) WHERE \(displaces); \(dropNotes)")
  }

  private var afterPlainUpdate: Trigger {
    trigger(
      when: "after", "update", "\(keyIs("NEW", "OLD")) AND NOT \(isUnusual)",
      logUsual("u", into: "\(newSlots), \(oldSlots)", "\(newValues), \(oldValues)"))
  }

  private var afterDisplacingUpdate: Trigger {
    let unmoved = keyIs("NEW", "OLD")
    let onto =
      "_kizunasync_displaced d WHERE d.tbl = \(tag) AND NOT \(unmoved) AND \(notedKeyIs("NEW")) AND NOT \(isLogged)"
    var moved = [
      log("d", into: oldSlots, "\(noted) FROM \(onto)"),
      log("m", into: "\(newSlots), \(oldSlots)", "\(newValues), \(oldValues) WHERE NOT \(unmoved)"),
    ]
    if refusesDeletes {
      let message =
        "update refused: the key of a row of \(table) cannot change, because its rows are never deleted"
      moved = ["SELECT raise(ABORT, \(SQL.literal(message))) WHERE NOT \(unmoved);"]
    }
    return trigger(
      when: "after", "update", suffix: "_displacing", "(NOT \(unmoved) OR \(isUnusual)) AND \(active)",
      [
        checkKey, logDisplaced,
        log("u", into: "\(newSlots), \(oldSlots)", "\(newValues), \(oldValues) WHERE \(unmoved)"),
        moved.joined(separator: " "),
      ].joined(separator: " "))
  }

  private var afterDelete: Trigger {
    trigger(when: "after", "delete", active, log("d", into: oldSlots, oldValues))
  }

  /// Reads the columns and their slots from the text of an after_delete trigger, which names each of them once.
  /// - Returns: nil for another text.
  static func columns(in afterDelete: String) -> [Column]? {
    let slotsBegin = "_kizunasync_capture(tbl, op, grp, at, "
    let valuesBegin = "julianday(), "
    guard let slots = afterDelete.firstRange(of: slotsBegin), let values = afterDelete.firstRange(of: valuesBegin),
      let slotsEnd = afterDelete[slots.upperBound...].firstIndex(of: ")")
    else { return nil }
    let numbers = afterDelete[slots.upperBound..<slotsEnd].split(separator: ", ").map { Int($0.dropFirst()) }
    var names: [String] = []
    var rest = afterDelete[values.upperBound...]
    while rest.hasPrefix("OLD."), let name = SQL.readName(&rest, after: "OLD.") {
      names.append(name)
      if rest.hasPrefix(", ") { rest = rest.dropFirst(2) }
    }
    // Those of format 2 have them in parentheses.
    guard rest.hasPrefix(";") || rest.hasPrefix(");"), names.count == numbers.count else { return nil }
    var columns: [Column] = []
    for (name, number) in zip(names, numbers) {
      guard let number else { return nil }
      columns.append(Column(name: name, slot: number))
    }
    return columns
  }

  init(
    table: String, columns: [Column], key: [String], uniqueSets: [UniqueSet], defaults: [String: String] = [:],
    rowID: String? = nil, isSelfReferencing: Bool = false, refusesWrites: Bool = false, refusesDeletes: Bool = false
  ) {
    self.table = table
    self.columns = columns
    self.key = key
    self.uniqueSets = uniqueSets
    self.defaults = defaults
    self.rowID = rowID
    self.isSelfReferencing = isSelfReferencing
    self.refusesWrites = refusesWrites
    self.refusesDeletes = refusesDeletes
  }
}
