import HostKit
import Testing

@testable import KizunaSync

/// Somebody else's tables under the names of the bookkeeping.
@Suite struct StrangerTablesTests {
  @Test(arguments: [
    ("CREATE TABLE _kizunasync_outbox(x)", "_kizunasync_outbox", "it has no column seq"),
    ("CREATE TABLE _kizunasync_meta(key, val)", "_kizunasync_meta", "it has no column value"),
    ("CREATE TABLE _KizunaSync_Pages(n, body)", "_KizunaSync_Pages", "it is spelled otherwise"),
    ("CREATE VIEW _kizunasync_ctl AS SELECT 1", "_kizunasync_ctl", "it is of the type view"),
    ("CREATE TABLE t(a); CREATE INDEX _kizunasync_kinds ON t(a)", "_kizunasync_kinds", "it is of the type index"),
  ])
  func areNamedAndLeftAlone(script: String, name: String, reason: String) throws {
    try withScratchFolder { folder in
      let path = folder + "/a.db"
      func refused(_ body: () throws -> Void) {
        let error = #expect(throws: KizunaSyncError.self, performing: body)
        #expect(error?.code == "STORE_UNAVAILABLE")
        let message = error?.message ?? ""
        #expect(
          message.contains(name) && message.contains(reason) && message.contains("rename or drop it"), "\(message)")
      }
      refused { _ = try ReplicaFixture(path: path, preparing: script) }
      refused { _ = try KizunaSyncReplicaStatus.read(databasePath: path) }
      #expect(DatabaseExamination.examine(databasePath: path).openingProblem?.contains(name) == true)
      let sql = try PlainDatabase(path)
      defer { sql.close() }
      // Nothing was made beside them.
      #expect(sql.integer("SELECT count(*) FROM sqlite_schema WHERE name LIKE '\\_kizunasync%' ESCAPE '\\'") == 1)
    }
  }

  @Test func otherNamesThatBeginSoAreNobodysBusiness() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(path: folder + "/a.db", preparing: "CREATE TABLE _kizunasync_mine(x)")
      #expect(try fixture.rows().isEmpty)
      fixture.replica.close()
    }
  }
}
