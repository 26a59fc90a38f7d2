import Testing

@testable import KizunaSync

/// Which keys plain SQL may write: those that can be spelled on the wire.
@Suite struct CaptureKeysTests {
  private static let good: [SQLiteValue] = [.text("a"), .text("Ω"), .integer(7), .integer(0), .integer(-1)]
  private static let bad: [SQLiteValue] = [.null, .real(1.5), .blob([0x61]), .blob([])]

  /// A column without affinity, which may hold NULL, as an app may declare its key.
  private func open(key: [String]) throws -> Database {
    let database = try Database(DatabaseConfiguration(path: nil, role: .writer))
    try database.execute(Schema.script)
    for slot in 0..<3 {
      try database.execute(
        """
        ALTER TABLE _kizunasync_capture ADD COLUMN n\(slot);
        ALTER TABLE _kizunasync_capture ADD COLUMN o\(slot);
        ALTER TABLE _kizunasync_displaced ADD COLUMN c\(slot);
        """)
    }
    try database.execute("CREATE TABLE t(a, b, v, PRIMARY KEY (\(key.joined(separator: ", "))))")
    let triggers = CaptureTriggers(
      table: "t", columns: [.init(name: "a", slot: 0), .init(name: "b", slot: 1), .init(name: "v", slot: 2)], key: key,
      uniqueSets: [key.map { ($0, "BINARY") }])
    for trigger in triggers.triggers() { try database.execute(trigger.sql) }
    return database
  }

  private func insert(_ key: [SQLiteValue], into database: Database) -> SQLiteError? {
    do {
      try database.run("INSERT INTO t(a, b) VALUES (?, ?)", key)
      return nil
    } catch {
      return error as? SQLiteError
    }
  }

  private func journal(_ database: Database) throws -> Int64? {
    try database.value("SELECT count(*) FROM _kizunasync_capture")?.integer
  }

  @Test func aSingleKeyIsTextOrAnIntegerAndNotEmpty() throws {
    let database = try open(key: ["a"])
    for cell in Self.good { #expect(insert([cell, .null], into: database) == nil, "\(cell)") }
    #expect(try journal(database) == Int64(Self.good.count))
    for cell in Self.bad + [.text("")] {
      let error = insert([cell, .null], into: database)
      #expect(error?.message.contains("the key of t (a) must be text or an integer") == true, "\(cell)")
      #expect(throws: SQLiteError.self, "\(cell)") { try database.run("UPDATE t SET a = ? WHERE a = 'a'", [cell]) }
    }
    // What was refused left nothing behind.
    #expect(try journal(database) == Int64(Self.good.count))
  }

  @Test func partsOfACompositeKeyMayBeEmpty() throws {
    let database = try open(key: ["a", "b"])
    for cell in Self.good + [.text("")] {
      #expect(insert([.text("x"), cell], into: database) == nil, "\(cell)")
    }
    for cell in Self.bad {
      #expect(insert([.text("x"), cell], into: database) != nil, "\(cell)")
      #expect(insert([cell, .text("x")], into: database) != nil, "\(cell)")
    }
    #expect(try journal(database) == Int64(Self.good.count) + 1)
  }
}
