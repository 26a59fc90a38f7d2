import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

@Suite struct ParkedRowsTests {
  private static func rows(_ count: Int, _ n: (Int) -> Int) -> [(pk: String, row: JSONValue)] {
    (0..<count).map { ("\($0)", ["id": .string("\($0)"), "n": .int(n($0))]) }
  }

  /// The statements of a transfer that brings so many rows of which an index has place for one.
  private func statements(parking count: Int) throws -> Int {
    try withScratchFolder { folder in
      let path = folder + "/a.db"
      let counter = Locked(0)
      StatementSpy.prepare()
      let fixture = try ReplicaFixture(path: path)
      defer { fixture.replica.close() }
      try fixture.sql("ALTER TABLE todos ADD COLUMN n; CREATE UNIQUE INDEX by_n ON todos(n)")
      StatementSpy.watch(path) { _, _ in counter.withLock { $0 += 1 } }
      defer { StatementSpy.watch(path, nil) }
      try fixture.pull(cursor: "1")
      try fixture.pull(Self.rows(count) { _ in 1 }, cursor: "2")
      #expect(try fixture.rows().count == 1)
      #expect(try fixture.database.value("SELECT count(*) FROM _kizunasync_parked") == .integer(Int64(count) - 1))
      return counter.withLock(\.self)
    }
  }

  @Test func theirNumberCostsNoMoreThanItself() throws {
    let few = try statements(parking: 50)
    let many = try statements(parking: 200)
    #expect(many < few * 6, "\(few) statements for 50 rows, \(many) for 200")
  }

  /// Rows that exchange their values fit only together, also beside some that do not fit at all.
  @Test func rowsThatChangePlacesFitBesideOnesThatDoNot() throws {
    let fixture = try ReplicaFixture()
    try fixture.sql("ALTER TABLE todos ADD COLUMN n; CREATE UNIQUE INDEX by_n ON todos(n)")
    try fixture.pull(cursor: "1")
    try fixture.pull(Self.rows(4) { $0 }, cursor: "1")
    // 0 to 2 move in a ring, and what is new wants the place of 3.
    let moved = Self.rows(3) { ($0 + 1) % 3 } + [("x", ["id": "x", "n": 3]), ("y", ["id": "y", "n": 3])]
    try fixture.pull(moved, cursor: "2")
    func shown() throws -> [String] {
      try fixture.database.map("SELECT id || n FROM todos ORDER BY id") { $0.string(0) }
    }
    #expect(try shown() == ["01", "12", "20", "33"])
    #expect(try parked(fixture) == ["x", "y"])
    // Once there is room, one of them comes.
    try fixture.pull([], tombstones: ["3"], cursor: "3")
    #expect(try shown() == ["01", "12", "20", "x3"])
    #expect(try parked(fixture) == ["y"])
    // A constraint that is gone makes room too, and nothing else need change.
    try fixture.sql("DROP INDEX by_n")
    try fixture.replica.followSchemaIfChanged()
    try fixture.replica.retryParkedIfDue()
    #expect(try shown() == ["01", "12", "20", "x3", "y3"])
    #expect(try parked(fixture) == [])
  }

  private func parked(_ fixture: ReplicaFixture) throws -> [String] {
    try fixture.database.map("SELECT pk FROM _kizunasync_parked ORDER BY pk") { $0.string(0) }
  }
}
