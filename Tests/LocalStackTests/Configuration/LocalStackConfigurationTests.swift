import HostKit
import LocalStack
import SyncServer
import Testing

@Suite struct LocalStackConfigurationTests {
  @Test func tablesOfTheCommandLine() throws {
    let owned = try LocalStackConfiguration.table(argument: "todos:owner_id")
    #expect(owned.name == "todos")
    #expect(owned.table.bucketColumn == "owner_id")
    #expect(owned.table.policy == .owner(column: "owner_id"))
    let open = try LocalStackConfiguration.table(argument: "notices")
    #expect(open.table.bucketColumn == nil)
    #expect(open.table.policy == .everyone)
    for text in ["", "a:", ":b", "a:b:c", "A", "a b", "t:id", "sqlite_x"] {
      #expect(throws: UsageError.self) { try LocalStackConfiguration.table(argument: text) }
    }
  }

  @Test func usersOfTheCommandLine() {
    #expect(LocalStackConfiguration.user(argument: "a@b.c:pass:word") == .init(email: "a@b.c", password: "pass:word"))
    for text in ["", "a@b.c", "a@b.c:", "nobody:x", "@b:x", "a@:x", "a@b@c:x", "a b@c:x", "a\n@c:x"] {
      #expect(LocalStackConfiguration.user(argument: text) == nil)
    }
  }

  @Test func tablesOfAConfigurationFile() {
    let table = SyncTable(
      TableDeclaration(
        bucket: .column("team", value: 42), key: ["hall", "seat"], softDeleteColumn: "gone", conflictMode: .hlc,
        syncMode: .pullOnly, columns: ["done": .boolean, "price": .numeric, "n": .number, "doc": .json]))
    #expect(table.bucketColumn == "team")
    #expect(table.policy == .everyone)
    #expect(table.keyColumns == ["hall", "seat"])
    #expect(table.conflictMode == .hlc)
    #expect(table.syncMode == .pullOnly)
    #expect(table.softDeleteColumn == "gone")
    #expect(table.columns == ["done": .boolean, "price": .numeric, "doc": .jsonb])
  }
}
