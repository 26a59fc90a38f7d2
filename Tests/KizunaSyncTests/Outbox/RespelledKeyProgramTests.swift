import HostKit
import SyncServer
import Testing

@testable import KizunaSync

/// Random statements that spell keys in every way SQLite tells apart. Whatever they do, a harvest changes nothing but the
/// spelling, and in the end the server holds what the file holds.
@Suite struct RespelledKeyProgramTests {
  struct Shape: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var key = ["id"]
    var kinds: [String: ColumnKind] = [:]
    var create: String?
    /// Literals of the key columns; each inner list is one key to the server.
    var spellings: [[[String]]]

    static let uuids = ["a", "b", "c"].map { letter in
      let text = "0b6c0000-0000-4000-8000-00000000ab\(letter)d"
      return [["'\(text)'"], ["'\(text.uppercased())'"], ["'\(text.replacing("0b6c", with: "0B6c"))'"]]
    }
    static let integers = (1...3).map { [["\($0)"], ["'\($0)'"], ["'0\($0)'"], ["'+\($0)'"]] }
    static let pairs = [("a", 1), ("a", 2), ("b", 1)].map { letter, n in
      let text = "0b6c0000-0000-4000-8000-00000000ab\(letter)d"
      return [["'\(text)'", "\(n)"], ["'\(text.uppercased())'", "\(n)"], ["'\(text)'", "'\(n)'"]]
    }

    static let all = [
      Shape(testDescription: "uuids", spellings: uuids),
      Shape(testDescription: "declared integers", kinds: ["id": .number], spellings: integers),
      Shape(testDescription: "unknown kind", spellings: integers.map { Array($0.prefix(2)) }),
      Shape(testDescription: "pairs", key: ["u", "n"], spellings: pairs),
      Shape(
        testDescription: "integer primary key", create: "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)",
        spellings: integers),
      Shape(
        testDescription: "text", create: "CREATE TABLE t(id TEXT PRIMARY KEY, a, b)", spellings: uuids),
      Shape(
        testDescription: "no row ids", create: "CREATE TABLE t(id PRIMARY KEY NOT NULL, a, b) WITHOUT ROWID",
        spellings: uuids + [[["1"], ["'1'"]]]),
    ]
  }

  static let programs = ProgramCount.of("KIZUNA_SPELLING_PROGRAMS", otherwise: 12)

  @Test(arguments: Shape.all)
  func aHarvestChangesNothingButTheSpelling(shape: Shape) async throws {
    let first = ProgramCount.firstSeed
    for seed in first..<(first + UInt64(Self.programs)) {
      // A program takes a while, and other tests wait for the same few threads.
      await Task.yield()
      let problem = try withScratchFolder { folder in
        var program = try SpellingProgram(shape, seed: seed, path: shape.create == nil ? nil : "\(folder)/a.db")
        defer { program.close() }
        return try program.run().map { "\($0)\n\(program.log.joined(separator: "\n"))" }
      }
      if let problem {
        Issue.record("seed \(seed), \(shape.testDescription): \(problem)")
        return
      }
    }
  }
}

private struct SpellingProgram {
  let shape: RespelledKeyProgramTests.Shape
  let fixture: ReplicaFixture
  var server: ReplicaServer
  var random: SeededRandom
  var log: [String] = []

  private var replica: Replica { fixture.replica }

  /// What the server calls the keys.
  private let pks: [String]

  init(_ shape: RespelledKeyProgramTests.Shape, seed: UInt64, path: String?) throws {
    self.shape = shape
    random = SeededRandom(seed)
    fixture = try ReplicaFixture(
      ["t": KizunaSyncTableConfig(key: shape.key, columns: shape.kinds)], path: path, preparing: shape.create)
    server = ReplicaServer(["t": SyncTable(keyColumns: shape.key)])
    let replica = fixture.replica
    try replica.transaction { try replica.ensure(["a", "b"], of: "t") }
    let layout = try replica.layout("t")
    pks = try shape.spellings.map { spellings in
      let cells = try replica.database.first("SELECT \(spellings[0].joined(separator: ", "))") { $0.row() }
      return layout.pk(ofKey: cells ?? []) ?? "?"
    }
  }

  func close() { replica.close() }

  mutating func run() throws -> String? {
    for _ in 0..<25 {
      for _ in 0..<random.below(4) { write() }
      if random.chance(50), let problem = try harvest() { return problem }
      if random.chance(20), let problem = try sync() { return problem }
    }
    return try harvest() ?? sync()
  }

  // MARK: Writing

  private mutating func write() {
    let statement = random.chance(15) ? "BEGIN; \(self.statement()); \(self.statement()); COMMIT" : self.statement()
    log.append(statement)
    try? fixture.sql(statement)
    if fixture.database.isInTransaction { try? fixture.sql("ROLLBACK") }
  }

  private mutating func statement() -> String {
    let key = random.pick(shape.spellings)
    let spelling = random.pick(key)
    let names = shape.key.joined(separator: ", ")
    let values = spelling.joined(separator: ", ")
    let isRow = zip(shape.key, spelling).map { "\($0) = \($1)" }.joined(separator: " AND ")
    let a = random.chance(20) ? "NULL" : "\(random.below(5))"
    let b = random.chance(20) ? "NULL" : "'\(random.below(5))'"
    let other = random.pick(random.chance(80) ? key : random.pick(shape.spellings))
    let respelling = zip(shape.key, other).map { "\($0) = \($1)" }.joined(separator: ", ")
    switch random.below(12) {
    case 0, 1, 2: return "INSERT INTO t(\(names), a, b) VALUES (\(values), \(a), \(b))"
    case 3: return "INSERT OR REPLACE INTO t(\(names), a) VALUES (\(values), \(a))"
    case 4: return "INSERT OR IGNORE INTO t(\(names), b) VALUES (\(values), \(b))"
    case 5: return "UPDATE t SET a = \(a) WHERE \(isRow)"
    case 6: return "UPDATE t SET b = \(b)"
    case 7, 8: return "UPDATE t SET \(respelling) WHERE \(isRow)"
    case 9: return "UPDATE OR REPLACE t SET \(respelling), b = \(b) WHERE \(isRow)"
    case 10: return "DELETE FROM t WHERE \(isRow)"
    default: return "UPDATE OR IGNORE t SET \(respelling), a = \(a)"
    }
  }

  // MARK: Checking

  private func physicalRows() throws -> [String: [[SQLiteValue]]] {
    let layout = try replica.layout("t")
    let rows = try fixture.database.map("SELECT \(layout.keyColumns), a, b FROM t") { $0.row() }
    return Dictionary(grouping: rows) { layout.pk(ofKey: Array($0.prefix(shape.key.count))) ?? "?" }
  }

  private mutating func harvest() throws -> String? {
    log.append("-- harvest")
    let before = try physicalRows()
    _ = try fixture.queue()
    let after = try physicalRows()
    let layout = try replica.layout("t")
    if Set(before.keys) != Set(after.keys) { return "\(before.keys.sorted()) became \(after.keys.sorted())" }
    for (pk, rows) in after {
      guard rows.count == 1, Array(rows[0].prefix(shape.key.count)) == layout.keyCells(pk) else {
        return "\(pk) stands as \(rows)"
      }
      for column in rows[0].indices.dropFirst(shape.key.count) {
        let known = before[pk, default: []].map { $0[column] }
        if !known.contains(rows[0][column]) { return "\(pk) was \(before[pk] ?? []), is \(rows)" }
      }
    }
    return try replica.brokenInvariants().first
  }

  private mutating func sync() throws -> String? {
    if let problem = try harvest() { return problem }
    log.append("-- sync of \(try fixture.queue())")
    func shown() throws -> [String: RowMap] {
      try fixture.rows("t").mapValues { row in row.filter { !shape.key.contains($0.key) } }
    }
    let wanted = try shown()
    let refused = try server.sync(replica)
    if !refused.isEmpty { return "refused: \(refused)" }
    let held = Dictionary(uniqueKeysWithValues: pks.compactMap { pk in server.row("t", pk).map { (pk, $0) } })
    if held != wanted { return "the server holds \(held), the file held \(wanted)" }
    if try shown() != wanted { return "the file shows \(try shown()), it held \(wanted)" }
    // A deleted key may be used again.
    server.state.reap(now: nil)
    return try replica.brokenInvariants().first
  }
}
