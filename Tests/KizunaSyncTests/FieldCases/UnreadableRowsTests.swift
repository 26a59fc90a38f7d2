import HostKit
import Testing

@testable import KizunaSync

/// JSON that is allowed and that no Swift value can hold: nested too deep, or with names that Swift takes for one.
@Suite struct UnreadableRowsTests {
  private static let deep = String(repeating: "[", count: 2_000) + String(repeating: "]", count: 2_000)
  private static let twice = #"{"\u00e9": 1, "e\u0301": 2}"#

  private static func pull(_ fixture: ReplicaFixture, _ rows: [(pk: String, row: String)], cursor: Int) throws {
    let items = rows.map { #"{"table":"todos","pk":"\#($0.pk)","row":\#($0.row),"seq":"1"}"# }
    let page = """
      {"rows":[\(items.joined(separator: ","))],"tombstones":[],"cursor":"\(cursor)","has_more":false,"signal":null}
      """
    let position = try fixture.replica.pullPosition(asking: [])
    _ = try fixture.replica.close(with: PullPage(checking: Array(page.utf8)), at: position)
  }

  private static func cell(_ fixture: ReplicaFixture, _ pk: String) throws -> String? {
    try fixture.database.value("SELECT meta FROM todos WHERE id = ?", .text(pk))?.text
  }

  /// The bytes go into the file as they came.
  @Test(arguments: [deep, twice]) func aKnownJSONColumnTakesThem(value: String) throws {
    let fixture = try ReplicaFixture()
    try Self.pull(fixture, [("first", #"{"id":"first","meta":{"a":1}}"#)], cursor: 1)
    try Self.pull(fixture, [("a", #"{"id":"a","meta":\#(value)}"#), ("b", #"{"id":"b","meta":[2]}"#)], cursor: 2)
    #expect(try Self.cell(fixture, "a") == value)
    #expect(try Self.cell(fixture, "b") == "[2]")
    #expect(try !fixture.database.exists("SELECT 1 FROM _kizunasync_parked"))
  }

  /// A row that has to be looked into is kept aside by its key; the rest of the page and later pages arrive.
  @Test(arguments: [deep, twice]) func elsewhereTheRowAloneWaits(value: String) throws {
    try withScratchFolder { folder in
      let path = folder + "/a.db"
      var fixture = try ReplicaFixture(path: path)
      try Self.pull(
        fixture, [("a", #"{"id":"a","meta":\#(value)}"#), ("b", #"{"id":"b","title":"x"}"#)], cursor: 1)
      #expect(try fixture.rows().keys.sorted() == ["b"])
      #expect(try fixture.database.value("SELECT pk FROM _kizunasync_parked")?.text == "a")
      #expect(
        try fixture.database.value("SELECT error FROM _kizunasync_parked")?.text?.hasPrefix(
          "JSON of the server that cannot be taken apart here: ") == true)
      #expect(try fixture.replica.checkpoint().cursor == "1")
      fixture.replica.close()

      fixture = try ReplicaFixture(path: path)
      #expect(try fixture.rows().keys.sorted() == ["b"])
      #expect(try fixture.database.exists("SELECT 1 FROM _kizunasync_parked"))
      try Self.pull(fixture, [("a", #"{"id":"a","meta":{"now":"flat"}}"#)], cursor: 2)
      #expect(try Self.cell(fixture, "a") == #"{"now":"flat"}"#)
      #expect(try !fixture.database.exists("SELECT 1 FROM _kizunasync_parked"))
      fixture.replica.close()
    }
  }

  /// A row with a write on its way shows that write until another version comes.
  @Test func aRowWithAWriteOnItsWayWaitsToo() throws {
    let fixture = try ReplicaFixture()
    try Self.pull(fixture, [("a", #"{"id":"a","title":"one","meta":{"a":1}}"#)], cursor: 1)
    try fixture.sql("UPDATE todos SET title = 'mine' WHERE id = 'a'")
    try fixture.replica.harvestNow()
    try Self.pull(fixture, [("a", #"{"id":"a","title":"two","meta":\#(Self.deep)}"#)], cursor: 2)
    #expect(try fixture.rows()["a"]?["title"] == "mine")
    #expect(try fixture.database.value("SELECT pk FROM _kizunasync_parked")?.text == "a")
    #expect(try fixture.queue() == [#"update a {"title":"mine"}"#])
  }
}
