import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Mutation ids that follow from the journal.
@Suite struct DerivedIDTests {
  /// The first results of the reference implementation for the inputs of no byte, of one byte 0, and of the bytes 0 to 7.
  @Test func theHashIsTheOneItSays() {
    func hash(_ count: Int) -> String {
      var hash = SipHash128()
      // In two pieces, wherever the words end.
      let bytes = (0..<count).map { UInt8($0) }
      bytes.prefix(count / 3).withUnsafeBytes { hash.add($0) }
      bytes.dropFirst(count / 3).withUnsafeBytes { hash.add($0) }
      let (first, second) = hash.finish()
      return [first, second].map { word in
        withUnsafeBytes(of: word.littleEndian) { $0.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
      }.joined()
    }
    #expect(hash(0) == "a3817f04ba25a8e66df67214c7550293")
    #expect(hash(1) == "da87c1d86b99af44347659119b22fc45")
  }

  private func ids(_ fixture: ReplicaFixture) throws -> [String] {
    try fixture.replica.harvestNow()
    return try fixture.database.map("SELECT mutation_id FROM _kizunasync_outbox ORDER BY seq") { $0.string(0) }
  }

  @Test func aCopyGivesTheSameIDsAndOtherWritesOthers() throws {
    try withScratchFolder { folder in
      let tables = ["notes": KizunaSyncTableConfig(columns: ["v": .number])]
      var fixture = try ReplicaFixture(tables, path: "\(folder)/one.db")
      try fixture.pull([("1", ["v": 1]), ("2", ["v": 1])], cursor: "1", table: "notes")
      try fixture.sql(
        "INSERT INTO notes(id, v) VALUES ('3', 1); UPDATE notes SET v = 2 WHERE id = '1'; UPDATE notes SET v = 1 WHERE id = '1'; "
          + "UPDATE notes SET v = 2 WHERE id = '1'; UPDATE notes SET id = '4' WHERE id = '2'")
      try fixture.sql("VACUUM INTO '\(folder)/two.db'")
      let first = try ids(fixture)
      #expect(first.count == 6 && Set(first).count == 6)
      #expect(first.allSatisfy(RandomUUID.isWellFormed))
      fixture.replica.close()

      fixture = try ReplicaFixture(tables, path: "\(folder)/two.db")
      #expect(try ids(fixture) == first)
      fixture.replica.close()

      // Another file, with the same writes.
      fixture = try ReplicaFixture(tables, path: "\(folder)/three.db")
      try fixture.pull([("1", ["v": 1]), ("2", ["v": 1])], cursor: "1", table: "notes")
      try fixture.sql("INSERT INTO notes(id, v) VALUES ('3', 1)")
      #expect(try Set(ids(fixture)).isDisjoint(with: first))
      fixture.replica.close()
    }
  }

  /// A write of the copy under the number that the original gave to another one.
  @Test func numbersThatAreUsedTwiceGiveOtherIDs() throws {
    try withScratchFolder { folder in
      let tables = ["notes": KizunaSyncTableConfig(columns: ["v": .number])]
      let fixture = try ReplicaFixture(tables, path: "\(folder)/one.db")
      try fixture.pull([("1", ["v": 1])], cursor: "1", table: "notes")
      try fixture.sql("VACUUM INTO '\(folder)/two.db'; UPDATE notes SET v = 2")
      let copy = try ReplicaFixture(tables, path: "\(folder)/two.db")
      try copy.sql("UPDATE notes SET v = 3")
      let (one, two) = (try ids(fixture), try ids(copy))
      #expect(one.count == 1 && two.count == 1 && one != two)
      fixture.replica.close()
      copy.replica.close()
    }
  }
}
