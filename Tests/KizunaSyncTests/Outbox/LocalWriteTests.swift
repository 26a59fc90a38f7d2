import HostKit
import Testing

@testable import KizunaSync

/// Writes through the library (Kizuna wire contract §13.1–13.3).
@Suite struct LocalWriteTests {
  private func fixture() throws -> ReplicaFixture {
    let fixture = try ReplicaFixture([
      "todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id")),
      "notices": KizunaSyncTableConfig(syncMode: .pullOnly),
      "notes": KizunaSyncTableConfig(softDeleteColumn: "deleted_at"),
      "seats": KizunaSyncTableConfig(key: ["hall", "seat"]),
    ])
    try fixture.pull([("a", ["title": "x", "tags": ["t"], "likes": 1])], cursor: "1")
    return fixture
  }

  private static let refused: [(LocalWrite, String)] = [
    (LocalWrite(table: "nothing", pk: "a", op: .delete), "UNKNOWN_TABLE"),
    (LocalWrite(table: "notices", pk: "a", op: .delete), "LOCAL_UNSUPPORTED"),
    (LocalWrite(table: "notes", pk: "a", op: .delete), "SOFT_DELETE_VIOLATION"),
    (LocalWrite(table: "todos", pk: "a", op: .update), "LOCAL_CONSTRAINT"),
    (LocalWrite(table: "todos", pk: "a", op: .update, columns: ["id": "a"]), "LOCAL_CONSTRAINT"),
    (LocalWrite(table: "todos", pk: "a", op: .insert, columns: ["id": "a"]), "LOCAL_CONSTRAINT"),
    (LocalWrite(table: "todos", pk: "b", op: .insert, columns: ["id": "c"]), "LOCAL_CONSTRAINT"),
    (LocalWrite(table: "todos", op: .insert, columns: ["id": nil]), "LOCAL_CONSTRAINT"),
    (LocalWrite(table: "todos", op: .insert, columns: ["id": ""]), "LOCAL_CONSTRAINT"),
    (LocalWrite(table: "todos", pk: "", op: .update, columns: ["n": 1]), "LOCAL_CONSTRAINT"),
    (LocalWrite(table: "todos", op: .delete), "LOCAL_CONSTRAINT"),
    (LocalWrite(table: "seats", op: .insert, columns: ["hall": 1]), "LOCAL_CONSTRAINT"),
    (LocalWrite(table: "seats", pk: "1", op: .update, columns: ["n": 1]), "LOCAL_CONSTRAINT"),
    (
      LocalWrite(table: "todos", pk: "a", op: .update, transforms: ["title": ["op": "arrayUnion", "values": [1]]]),
      "LOCAL_CONSTRAINT"
    ),
    (
      LocalWrite(table: "todos", pk: "a", op: .insert, transforms: ["n": ["op": "increment", "by": 1]]),
      "LOCAL_UNSUPPORTED"
    ),
    (
      LocalWrite(
        table: "todos", pk: "a", op: .update, columns: ["n": 1], transforms: ["n": ["op": "increment", "by": 1]]),
      "LOCAL_CONSTRAINT"
    ),
  ]

  @Test(arguments: refused.indices)
  func aRefusedWriteLeavesNothing(index: Int) throws {
    let fixture = try fixture()
    let before = try fixture.rows()
    let (write, code) = Self.refused[index]
    let error = #expect(throws: KizunaSyncError.self) { try fixture.apply(write) }
    #expect(error?.code == code, "\(error?.message ?? "")")
    #expect(try fixture.queue() == [])
    #expect(try fixture.rows() == before)
  }

  @Test func aQueuedMutationIDIsRefused() throws {
    let fixture = try fixture()
    let id = RandomUUID.make()
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .update, columns: ["n": 1], mutationID: id))
    let error = #expect(throws: KizunaSyncError.self) {
      try fixture.apply(
        LocalWrite(table: "todos", pk: "a", op: .update, columns: ["n": 2], mutationID: id.uppercased()))
    }
    #expect(error?.code == "LOCAL_CONSTRAINT")
  }

  @Test func anInsertWithoutIDMintsOneAndKeepsItOutOfTheColumns() throws {
    let fixture = try fixture()
    let pk = try fixture.apply(LocalWrite(table: "todos", op: .insert, columns: ["title": "new"]))
    #expect(RandomUUID.isWellFormed(pk))
    #expect(try fixture.queue() == ["insert \(pk) {\"owner_id\":\"\(owner)\",\"title\":\"new\"}"])
  }

  @Test func anExplicitNullOwnerIsKept() throws {
    let fixture = try fixture()
    let pk = try fixture.apply(LocalWrite(table: "todos", op: .insert, columns: ["owner_id": nil]))
    #expect(try fixture.queue() == ["insert \(pk) {\"owner_id\":null}"])
    #expect(try fixture.rows()[pk]?["owner_id"] == .null)
  }

  @Test func keyColumnsOfAnInsertTravelAsGivenInCanonicalSpelling() throws {
    let fixture = try fixture()
    let pk = try fixture.apply(
      LocalWrite(table: "todos", op: .insert, columns: ["id": "ABCDEF01-2345-4789-ABCD-EF0123456789", "owner_id": nil]))
    #expect(pk == "abcdef01-2345-4789-abcd-ef0123456789")
    #expect(try fixture.queue() == ["insert \(pk) {\"id\":\"\(pk)\",\"owner_id\":null}"])
    #expect(
      try fixture.apply(LocalWrite(table: "seats", op: .insert, columns: ["hall": 1, "seat": 12])) == "[\"1\", \"12\"]")
  }

  @Test func anUpdateOfARowNeverSeenShowsWhatItNames() throws {
    let fixture = try fixture()
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "ghost", op: .update, columns: ["title": "boo"]))
    #expect(try fixture.rows()["ghost"] == ["id": "ghost", "title": "boo"])
    #expect(try fixture.queue() == ["update ghost {\"title\":\"boo\"}"])
  }

  @Test func anUpdateOfADeletedRowIsQueuedAndNotShown() throws {
    let fixture = try fixture()
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .delete))
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .update, columns: ["title": "late"]))
    #expect(try fixture.rows()["a"] == nil)
    #expect(try fixture.queue() == ["delete a {}", "update a {\"title\":\"late\"}"])
  }

  @Test func transformsShowTheirEffectAtOnce() throws {
    let fixture = try fixture()
    _ = try fixture.apply(
      LocalWrite(
        table: "todos", pk: "a", op: .update,
        transforms: ["likes": ["op": "increment", "by": 2], "tags": ["op": "arrayUnion", "values": ["u"]]]))
    #expect(try fixture.rows()["a"]?["likes"] == 3)
    #expect(try fixture.rows()["a"]?["tags"] == ["t", "u"])
    #expect(
      try fixture.queue() == [
        "update a {} {\"likes\":{\"by\":2,\"op\":\"increment\"},\"tags\":{\"op\":\"arrayUnion\",\"values\":[\"u\"]}}"
      ])
  }

  @Test func severalWritesCommitOrFailTogether() throws {
    let fixture = try fixture()
    #expect(throws: KizunaSyncError.self) {
      try fixture.replica.localTransaction {
        _ = try fixture.replica.apply(LocalWrite(table: "todos", pk: "a", op: .update, columns: ["brand_new": 1]))
        _ = try fixture.replica.apply(LocalWrite(table: "todos", pk: "a", op: .insert, columns: ["id": "a"]))
      }
    }
    #expect(try fixture.queue() == [])
    #expect(try fixture.rows()["a"] == ["id": "a", "title": "x", "tags": ["t"], "likes": 1])
  }

  @Test func whatTriggersOfTheAppDoIsQueuedToo() throws {
    let fixture = try fixture()
    try fixture.sql(
      "CREATE TRIGGER app AFTER UPDATE OF title ON todos BEGIN INSERT INTO notes(id) VALUES ('note-' || NEW.id); END")
    _ = try fixture.apply(LocalWrite(table: "todos", pk: "a", op: .update, columns: ["title": "y"]))
    #expect(try Set(fixture.queue()) == ["update a {\"title\":\"y\"}", "insert note-a {}"])
  }
}
