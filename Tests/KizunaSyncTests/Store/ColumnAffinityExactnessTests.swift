import HostKit
import Testing

@testable import KizunaSync

/// What a column that an app declared would make of values of the server. SQLite says nothing when it changes one.
@Suite struct ColumnAffinityExactnessTests {
  static let texts: [(ColumnAffinity, String, Bool)] = [
    (.integer, "501", true), (.integer, "-9223372036854775808", true), (.integer, "00501", false),
    (.integer, "+5", false), (.integer, " 5", false), (.integer, "5e3", false), (.integer, "1.50", false),
    (.integer, "a5", true), (.integer, "", true), (.numeric, "12345678901234567890.5", false),
    (.numeric, "0.25", true), (.numeric, "2026-01-01T00:00:00Z", true), (.real, "9007199254740993", false),
    (.real, "9007199254740992", true), (.text, "00501", true), (.none, "00501", true),
  ]

  @Test(arguments: texts) func textsAreKeptLetterByLetter(affinity: ColumnAffinity, text: String, isKept: Bool) throws {
    #expect(affinity.keeps(text: text) == isKept)
    // What SQLite itself does: kept texts read the same after being stored.
    let database = try Database(DatabaseConfiguration(path: nil, role: .writer))
    defer { database.close() }
    let type = ["text": "TEXT", "integer": "INTEGER", "real": "REAL", "numeric": "NUMERIC", "none": "BLOB"][
      "\(affinity)"]
    try database.execute("CREATE TABLE t(c \(try #require(type)))")
    try database.run("INSERT INTO t VALUES (?)", .text(text))
    let same = affinity == .real ? "CAST(c AS NUMERIC) = CAST(? AS NUMERIC)" : "CAST(c AS TEXT) = ?"
    let kept = try database.value("SELECT \(same) FROM t", .text(text))
    if isKept { #expect(kept == .integer(1)) } else if affinity != .real { #expect(kept == .integer(0)) }
  }

  /// Digits without end are compared without trapping.
  @Test(arguments: ["1.5e-9223372036854775808", "10e9223372036854775807", "0.1e-99999999999999999999", "1e400"])
  func exponentsOfAnySizeAreNoTrap(lexeme: String) {
    for affinity in [ColumnAffinity.integer, .real, .numeric] { #expect(!affinity.keeps(.text(lexeme))) }
  }

  /// The row waits and is told; nothing stands changed in the table.
  @Test func aRowThatWouldBeChangedIsParked() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(
        ["notes": KizunaSyncTableConfig()], path: folder + "/a.db",
        preparing: "CREATE TABLE notes(id TEXT NOT NULL PRIMARY KEY, zip INTEGER, price DECIMAL)")
      try fixture.pull(
        [
          ("a", ["id": "a", "zip": "00501", "price": nil]), ("b", ["id": "b", "zip": "501", "price": "0.25"]),
          ("c", ["id": "c", "zip": nil, "price": "12345678901234567890.5"]),
        ], cursor: "1", table: "notes")
      #expect(try fixture.rows("notes").keys.sorted() == ["b"])
      let parked = try fixture.database.map("SELECT pk, error FROM _kizunasync_parked ORDER BY pk") {
        "\($0.string(0)) \($0.string(1))"
      }
      #expect(parked.map { $0.prefix(1) } == ["a", "c"])
      #expect(parked.allSatisfy { $0.contains("declare it TEXT") })
      #expect(fixture.warnings.withLock { $0 } == ["store.row_parked", "store.row_parked"])
    }
  }
}
