import CSQLite
import Foundation
import Testing

@testable import KizunaSync

@Suite struct DatabaseTests {
  private func memory() throws -> Database { try Database(DatabaseConfiguration(path: nil, role: .writer)) }

  @Test func valuesComeBackAsTheyWere() throws {
    let database = try memory()
    try database.execute("CREATE TABLE t(v)")
    let values: [SQLiteValue] = [
      .null, .integer(.min), .integer(.max), .real(0.1), .real(-.infinity), .text(""), .text("nul\u{0}inside"),
      .text("é😀"), .blob([]), .blob([0, 255]),
    ]
    for value in values { try database.run("INSERT INTO t VALUES (?)", value) }
    #expect(try database.map("SELECT v FROM t ORDER BY rowid") { $0.value(0) } == values)
  }

  @Test func aStatementInUseIsNotHandedOutTwice() throws {
    let database = try memory()
    let sql = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3) SELECT x FROM n"
    var seen: [Int64] = []
    try database.forEachRow(sql) { outer in
      try database.forEachRow(sql) { inner in seen.append(outer.int64(0) * 10 + inner.int64(0)) }
    }
    #expect(seen == [11, 12, 13, 21, 22, 23, 31, 32, 33])
  }

  @Test func anErrorNamesTheStatementAndNoArgument() throws {
    let database = try memory()
    try database.execute("CREATE TABLE t(v UNIQUE)")
    try database.run("INSERT INTO t VALUES (?)", "secret")
    let error = #expect(throws: SQLiteError.self) { try database.run("INSERT INTO t VALUES (?)", "secret") }
    #expect(error?.code == 2067)
    #expect(error?.sql == "INSERT INTO t VALUES (?)")
    #expect("\(error!)".contains("secret") == false)
  }

  @Test func anErrorUndoesTheTransactionOrTheSavepoint() throws {
    struct Stop: Error {}
    let database = try memory()
    try database.execute("CREATE TABLE t(v)")
    #expect(throws: Stop.self) {
      try database.transaction {
        try database.run("INSERT INTO t VALUES (1)")
        throw Stop()
      }
    }
    try database.transaction {
      try database.run("INSERT INTO t VALUES (2)")
      try? database.savepoint {
        try database.run("INSERT INTO t VALUES (3)")
        throw Stop()
      }
    }
    #expect(try database.map("SELECT v FROM t") { $0.int64(0) } == [2])
    #expect(!database.isInTransaction)
  }

  @Test func foreignKeysHoldWhereTheTransactionAsksForThem() throws {
    let database = try memory()
    try database.execute("CREATE TABLE p(id PRIMARY KEY); CREATE TABLE c(p REFERENCES p(id))")
    try database.transaction { try database.run("INSERT INTO c VALUES (1)") }
    #expect(throws: SQLiteError.self) {
      try database.transaction(foreignKeys: true) { try database.run("INSERT INTO c VALUES (2)") }
    }
    try database.transaction { try database.run("INSERT INTO c VALUES (3)") }
    #expect(try database.map("SELECT p FROM c") { $0.int64(0) } == [1, 3])
  }

  @Test func aLongLogIsCopiedWhenNobodyWaits() throws {
    try withScratchFolder { folder in
      let database = try Database(DatabaseConfiguration(path: folder + "/a.db", role: .writer))
      defer { database.close() }
      try database.execute("CREATE TABLE t(v)")
      try database.transaction {
        for _ in 0..<1200 { try database.run("INSERT INTO t VALUES (zeroblob(4000))") }
      }
      let before = try fileSize(folder + "/a.db")
      database.checkpointIfLong()
      #expect(try fileSize(folder + "/a.db") > before + 4_000_000)
    }
  }

  private func fileSize(_ path: String) throws -> Int {
    try #require(FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
  }

  @Test func statementsThatFellOutOfTheCacheWorkOn() throws {
    let database = try memory()
    let held = try database.statement("SELECT 42")
    for index in 0..<700 { #expect(try database.value("SELECT \(index)") == .integer(Int64(index))) }
    #expect(try held.step() && held.int64(0) == 42)
  }

  @Test func aReaderSeesTheLastCommitWhileTheWriterWorks() throws {
    try withScratchFolder { folder in
      let path = folder + "/a.db"
      let writer = try Database(DatabaseConfiguration(path: path, role: .writer))
      try writer.execute("CREATE TABLE t(v); INSERT INTO t VALUES (1)")
      let reader = try Database(DatabaseConfiguration(path: path, role: .reader))
      try writer.transaction {
        try writer.run("INSERT INTO t VALUES (2)")
        #expect(try reader.value("SELECT count(*) FROM t") == 1)
      }
      #expect(try reader.value("SELECT count(*) FROM t") == 2)
      #expect(throws: SQLiteError.self) { try reader.run("INSERT INTO t VALUES (3)") }
      reader.close()
      writer.close()
    }
  }
}
