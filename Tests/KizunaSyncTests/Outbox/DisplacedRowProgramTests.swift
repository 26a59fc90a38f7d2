import HostKit
import SyncServer
import Testing

@testable import KizunaSync

/// Random statements that displace rows through every kind of unique index, with an app's own triggers in between and a
/// harvest that may stop after any journal row. In the end the server holds what the file holds.
@Suite struct DisplacedRowProgramTests {
  struct Shape: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var create: String

    static let columns = "id TEXT PRIMARY KEY, slug, v, flag"
    static let all = [
      Shape(
        testDescription: "two unique columns",
        create: "CREATE TABLE t(\(columns)); CREATE UNIQUE INDEX s ON t(slug); CREATE UNIQUE INDEX u ON t(v)"),
      Shape(
        testDescription: "equal but for case",
        create: "CREATE TABLE t(\(columns)); CREATE UNIQUE INDEX s ON t(slug COLLATE NOCASE, flag)"),
      Shape(
        testDescription: "an index of some rows",
        create: "CREATE TABLE t(\(columns)); CREATE UNIQUE INDEX s ON t(slug) WHERE flag = 1"),
      Shape(
        testDescription: "row ids as keys",
        create: "CREATE TABLE t(id INTEGER PRIMARY KEY, slug UNIQUE, v, flag)"),
      Shape(
        testDescription: "triggers of the app",
        create: """
          CREATE TABLE t(\(columns), UNIQUE (slug));
          CREATE TRIGGER early BEFORE INSERT ON t WHEN NEW.v = 1
            BEGIN UPDATE t SET slug = NULL WHERE slug = NEW.slug; END;
          CREATE TRIGGER away BEFORE INSERT ON t WHEN NEW.v = 2 BEGIN DELETE FROM t WHERE slug = NEW.slug; END;
          CREATE TRIGGER more BEFORE INSERT ON t WHEN NEW.v = 3
            BEGIN INSERT OR IGNORE INTO t VALUES ('z', NULL, 0, 0); UPDATE t SET v = v + 10 WHERE id = 'a'; END;
          CREATE TRIGGER never BEFORE INSERT ON t WHEN NEW.v = 4 BEGIN SELECT raise(IGNORE); END;
          CREATE TRIGGER moved BEFORE INSERT ON t WHEN NEW.v = 5
            BEGIN UPDATE OR IGNORE t SET id = 'z' WHERE slug = NEW.slug; END;
          """),
      Shape(
        testDescription: "a generated column",
        create: "CREATE TABLE t(\(columns), low AS (lower(slug)) UNIQUE)"),
      Shape(
        testDescription: "no row ids",
        create: "CREATE TABLE t(id TEXT PRIMARY KEY NOT NULL, slug UNIQUE, v, flag, UNIQUE (v, flag)) WITHOUT ROWID"),
    ]
  }

  static let programs = ProgramCount.of("KIZUNA_DISPLACED_PROGRAMS", otherwise: 25)

  @Test(arguments: Shape.all)
  func theServerHoldsWhatTheFileHolds(shape: Shape) throws {
    let first = ProgramCount.firstSeed
    for seed in first..<(first + UInt64(Self.programs)) {
      let problem = try withScratchFolder { folder in
        var program = try DisplacementProgram(shape, seed: seed, path: "\(folder)/a.db")
        defer { program.replica.close() }
        return try program.run().map { "\($0)\n\(program.log.joined(separator: "\n"))" }
      }
      if let problem {
        Issue.record("seed \(seed), \(shape.testDescription): \(problem)")
        return
      }
    }
  }
}

private struct DisplacementProgram {
  let fixture: ReplicaFixture
  let hasIntegers: Bool
  var server: ReplicaServer
  var random: SeededRandom
  var log: [String] = []

  var replica: Replica { fixture.replica }

  init(_ shape: DisplacedRowProgramTests.Shape, seed: UInt64, path: String) throws {
    random = SeededRandom(seed)
    hasIntegers = shape.create.contains("INTEGER")
    fixture = try ReplicaFixture(["t": KizunaSyncTableConfig()], path: path, preparing: shape.create)
    server = ReplicaServer(["t": SyncTable(keyColumns: ["id"])])
  }

  mutating func run() throws -> String? {
    for _ in 0..<20 {
      for _ in 0..<random.below(6) { try write() }
      if random.chance(40) { try harvestSome() }
      if random.chance(20), let problem = try sync() { return problem }
    }
    return try sync()
  }

  private mutating func write() throws {
    let statement = random.chance(20) ? "BEGIN; \(self.statement()); \(self.statement()); COMMIT" : self.statement()
    log.append(statement)
    try fixture.sql("PRAGMA recursive_triggers = \(random.below(2))")
    try? fixture.sql(statement)
    if fixture.database.isInTransaction { try? fixture.sql("ROLLBACK") }
  }

  private mutating func statement() -> String {
    func id() -> String {
      hasIntegers ? random.pick(["1", "2", "3", "4", "NULL"]) : random.pick(["'a'", "'b'", "'c'", "'d'"])
    }
    func row() -> String {
      let slug = random.pick(["'p'", "'P'", "'q'", "'r'", "NULL"])
      return "(\(id()), \(slug), \(random.below(6)), \(random.below(2)))"
    }
    let verb = random.pick(["INSERT", "INSERT OR REPLACE", "INSERT OR REPLACE", "INSERT OR IGNORE"])
    let assignment = random.pick([
      "slug = 'p'", "slug = 'Q'", "v = v + 1", "v = 3", "flag = 1", "flag = 1 - flag", "id = \(id())",
    ])
    let update = random.pick(["UPDATE", "UPDATE OR REPLACE", "UPDATE OR REPLACE", "UPDATE OR IGNORE"])
    switch random.below(10) {
    case 0...4: return "\(verb) INTO t VALUES \(row())"
    case 5: return "\(verb) INTO t VALUES \(row()), \(row()), \(row())"
    case 6: return "INSERT INTO t VALUES \(row()) ON CONFLICT DO UPDATE SET flag = excluded.flag, v = excluded.v"
    case 7: return "DELETE FROM t WHERE id = \(id())"
    case 8: return "\(update) t SET \(assignment)"
    default: return "\(update) t SET \(assignment) WHERE id = \(id())"
    }
  }

  /// A harvest that stops as soon as it may, as if a long backlog were taken in short transactions.
  private mutating func harvestSome() throws {
    log.append("-- harvest of some")
    try replica.bareTransaction(sync: .normal, foreignKeys: false) {
      var harvest = Harvest(replica, pending: nil)
      harvest.batch = 1
      try harvest.run(limit: 1 + random.below(4))
    }
  }

  private mutating func sync() throws -> String? {
    log.append("-- sync of \(try fixture.queue())")
    let wanted = try fixture.rows("t")
    let refused = try server.sync(replica)
    if try fixture.database.exists("SELECT 1 FROM _kizunasync_displaced") { return "notes are left" }
    if !refused.isEmpty { return "refused: \(refused)" }
    let pks = hasIntegers ? (1...40).map { String($0) } : ["a", "b", "c", "d", "z"]
    let held = Dictionary(uniqueKeysWithValues: pks.compactMap { pk in server.row("t", pk).map { (pk, $0) } })
    func cells(_ rows: [String: RowMap]) -> [String: RowMap] {
      rows.mapValues { $0.filter { $0.key != "id" && !$0.value.isNull } }
    }
    if cells(held) != cells(wanted) { return "the server holds \(held), the file held \(wanted)" }
    if try cells(fixture.rows("t")) != cells(wanted) {
      return "the file shows \(try fixture.rows("t")), it held \(wanted)"
    }
    // A deleted key may be used again.
    server.state.reap(now: nil)
    return try replica.brokenInvariants().first
  }
}
