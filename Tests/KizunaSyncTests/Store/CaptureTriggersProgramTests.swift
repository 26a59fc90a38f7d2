import HostKit
import Testing

@testable import KizunaSync

/// Random statements against a captured table, with every way SQLite can displace a row, under any setting of
/// `recursive_triggers` and `foreign_keys`. A shadow kept from the journal alone must equal the table after each.
@Suite struct CaptureTriggersProgramTests {
  struct Shape: Sendable, CustomTestStringConvertible {
    var name: String
    var create: String
    var uniqueSets: [[String]]
    var isSelfReferencing = false
    var defaults: [String: String] = [:]
    /// Statements name row ids too.
    var hasRowIDs = false
    var testDescription: String { name }

    static let all = [
      Shape(name: "key only", create: "CREATE TABLE t(id TEXT PRIMARY KEY, slug, v, parent)", uniqueSets: [["id"]]),
      Shape(
        name: "unique column", create: "CREATE TABLE t(id TEXT PRIMARY KEY, slug TEXT UNIQUE, v, parent)",
        uniqueSets: [["id"], ["slug"]]),
      Shape(
        name: "unique pair, without row ids",
        create: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, slug, v, parent, UNIQUE (slug, v)) WITHOUT ROWID",
        uniqueSets: [["id"], ["slug", "v"]]),
      Shape(
        name: "tree",
        create: "CREATE TABLE t(id TEXT PRIMARY KEY, slug TEXT UNIQUE, v, "
          + "parent TEXT REFERENCES t(id) ON DELETE CASCADE)", uniqueSets: [["id"], ["slug"]], isSelfReferencing: true),
      Shape(
        name: "default under or replace",
        create: "CREATE TABLE t(id TEXT PRIMARY KEY, slug TEXT NOT NULL DEFAULT 's1', v, parent, UNIQUE (slug))",
        uniqueSets: [["id"], ["slug"]], defaults: ["slug": "'s1'"]),
      Shape(
        name: "row ids", create: "CREATE TABLE t(id TEXT PRIMARY KEY, slug TEXT UNIQUE, v, parent)",
        uniqueSets: [["id"], ["slug"]], hasRowIDs: true),
      Shape(
        name: "tree with row ids",
        create: "CREATE TABLE t(id TEXT PRIMARY KEY, slug, v, parent TEXT REFERENCES t(id) ON DELETE CASCADE)",
        uniqueSets: [["id"]], isSelfReferencing: true, hasRowIDs: true),
    ]
  }

  static let columns = ["id", "slug", "v", "parent"]
  static let programs = ProgramCount.of("KIZUNA_CAPTURE_PROGRAMS", otherwise: 25)

  @Test(arguments: Shape.all)
  func journalTellsEveryChange(shape: Shape) async throws {
    let first = ProgramCount.firstSeed
    for seed in first..<(first + UInt64(Self.programs)) {
      // A program takes a while, and other tests wait for the same few threads.
      await Task.yield()
      if let problem = try run(shape, seed: seed) {
        Issue.record("seed \(seed): \(problem)")
        return
      }
    }
  }

  private func run(_ shape: Shape, seed: UInt64) throws -> String? {
    var random = SeededRandom(seed)
    let database = try Self.open(shape)
    defer { database.close() }
    var shadow: [SQLiteValue: [SQLiteValue]] = [:]
    var last: Int64 = 0
    var log: [String] = []
    for _ in 0..<50 {
      try database.execute("PRAGMA recursive_triggers = \(random.below(2))")
      try database.execute("PRAGMA foreign_keys = \(random.below(2))")
      log.append(try step(database, &random, shape, inTransaction: random.below(6) == 0))
      if let problem = try follow(database, &shadow, &last) {
        return "\(problem) after \(log.suffix(3).joined(separator: "; "))"
      }
      let rows = try database.map("SELECT * FROM t") { $0.row() }
      let real = Dictionary(uniqueKeysWithValues: rows.map { ($0[0], $0) })
      if real != shadow { return "the journal differs from the table after \(log.suffix(3).joined(separator: "; "))" }
    }
    return nil
  }

  private static func open(_ shape: Shape) throws -> Database {
    let database = try Database(DatabaseConfiguration(path: nil, role: .writer))
    try database.execute(Schema.script)
    for slot in columns.indices {
      try database.execute(
        """
        ALTER TABLE _kizunasync_capture ADD COLUMN n\(slot);
        ALTER TABLE _kizunasync_capture ADD COLUMN o\(slot);
        ALTER TABLE _kizunasync_displaced ADD COLUMN c\(slot);
        """)
    }
    try database.execute(shape.create)
    let triggers = CaptureTriggers(
      table: "t", columns: columns.enumerated().map { .init(name: $1, slot: $0) }, key: ["id"],
      uniqueSets: shape.uniqueSets.map { $0.map { ($0, "BINARY") } }, defaults: shape.defaults,
      rowID: shape.hasRowIDs ? "_rowid_" : nil, isSelfReferencing: shape.isSelfReferencing)
    for trigger in triggers.triggers() { try database.execute(trigger.sql) }
    return database
  }

  /// One statement, or three in a transaction that may be rolled back. A constraint may refuse it.
  private func step(
    _ database: Database, _ random: inout SeededRandom, _ shape: Shape, inTransaction: Bool
  ) throws -> String {
    guard inTransaction else { return try statement(database, &random, shape) }
    try database.run("BEGIN")
    let done = try (0..<3).map { _ in try statement(database, &random, shape) }
    let end = random.below(3) == 0 ? "ROLLBACK" : "COMMIT"
    try database.run(end)
    return "BEGIN; " + done.joined(separator: "; ") + "; " + end
  }

  private func statement(_ database: Database, _ random: inout SeededRandom, _ shape: Shape) throws -> String {
    let ids: [SQLiteValue] = ["a", "b", "c", "d", "e", "f"]
    let slugs: [SQLiteValue] = ["s1", "s2", "s3", "s4", .null]
    func id() -> SQLiteValue { ids[random.below(ids.count)] }
    func slug() -> SQLiteValue { slugs[random.below(slugs.count)] }
    let v = SQLiteValue.integer(Int64(random.below(10)))
    let parent: SQLiteValue = random.below(2) == 0 ? .null : id()
    let row = [id(), slug(), v, parent]
    let (sql, arguments): (String, [SQLiteValue])
    switch random.below(shape.hasRowIDs ? 20 : 16) {
    case 0: (sql, arguments) = ("INSERT INTO t VALUES (?, ?, ?, ?)", row)
    case 1, 2: (sql, arguments) = ("INSERT OR REPLACE INTO t VALUES (?, ?, ?, ?)", row)
    case 3: (sql, arguments) = ("INSERT OR IGNORE INTO t VALUES (?, ?, ?, ?)", row)
    case 4:
      (sql, arguments) = (
        "INSERT INTO t VALUES (?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET slug = excluded.slug, v = excluded.v", row
      )
    case 5: (sql, arguments) = ("INSERT INTO t VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", row)
    case 6: (sql, arguments) = ("UPDATE t SET v = ?, slug = ? WHERE id = ?", [v, slug(), id()])
    case 7, 8: (sql, arguments) = ("UPDATE OR REPLACE t SET v = ?, slug = ? WHERE id = ?", [v, slug(), id()])
    case 9: (sql, arguments) = ("UPDATE t SET id = ? WHERE id = ?", [id(), id()])
    case 10, 11:
      (sql, arguments) = ("UPDATE OR REPLACE t SET id = ?, slug = ? WHERE id = ?", [id(), slug(), id()])
    case 12: (sql, arguments) = ("UPDATE t SET v = v + 1", [])
    case 13: (sql, arguments) = ("DELETE FROM t WHERE id = ?", [id()])
    case 14:
      (sql, arguments) = random.below(4) == 0 ? ("DELETE FROM t", []) : ("UPDATE OR IGNORE t SET slug = ?", [slug()])
    case 16, 17:
      (sql, arguments) = (
        "INSERT OR REPLACE INTO t(rowid, id, slug, v, parent) VALUES (?, ?, ?, ?, ?)",
        [.integer(Int64(random.below(6)))] + row
      )
    case 18:
      (sql, arguments) = (
        "UPDATE OR REPLACE t SET rowid = ? WHERE id = ?", [.integer(Int64(random.below(6))), id()]
      )
    case 19:
      (sql, arguments) = (
        "UPDATE OR REPLACE t SET rowid = ?, id = ? WHERE id = ?", [.integer(Int64(random.below(6))), id(), id()]
      )
    default:
      (sql, arguments) = (
        "INSERT OR REPLACE INTO t SELECT ?, ?, ?, NULL UNION ALL SELECT ?, ?, ?, NULL",
        [id(), slug(), v, id(), slug(), v]
      )
    }
    do {
      try database.run(sql, arguments)
    } catch let error as SQLiteError where error.isConstraint {
    }
    return sql
  }

  /// Applies the new journal rows to the shadow.
  private func follow(
    _ database: Database, _ shadow: inout [SQLiteValue: [SQLiteValue]], _ last: inout Int64
  ) throws -> String? {
    let rows = try database.map(
      "SELECT seq, op, n0, n1, n2, n3, o0, o1, o2, o3 FROM _kizunasync_capture WHERE seq > ? ORDER BY seq",
      [.integer(last)]
    ) { ($0.int64(0), $0.string(1), Array($0.row()[2..<6]), Array($0.row()[6..<10])) }
    for (seq, op, new, old) in rows {
      last = seq
      switch op {
      case "i":
        if shadow.updateValue(new, forKey: new[0]) != nil { return "an insert over a row" }
      case "u", "r", "m":
        if shadow.removeValue(forKey: old[0]) != old { return "an update with other old values" }
        if (op == "m") == (old[0] == new[0]) { return "an update that moves, or does not, as another one" }
        if shadow.updateValue(new, forKey: new[0]) != nil { return "an update over a row" }
      default:
        if shadow.removeValue(forKey: old[0]) == nil { return "a delete of no row" }
      }
    }
    return nil
  }
}
