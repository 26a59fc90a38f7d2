import Foundation
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// The chains of tables and builders, as an app writes them (Swift surface §5).
@Suite struct KizunaSyncBuildersTests {
  func facts(_ rows: [[String: Any]], config: KizunaSyncTableConfig = .init(key: ["n"])) async throws
    -> KizunaSyncTable
  {
    let client = KizunaSyncClient()
    try await client.create(.init(tables: ["facts": config]))
    let table = try client.from("facts")
    for row in rows { try await table.insert(row) }
    return table
  }

  func numbers(_ rows: Any) -> [Int] {
    (rows as? [[String: Any]])?.compactMap { $0["n"] as? Int } ?? []
  }

  static var rows: [[String: Any]] {
    [
      ["n": 1, "t": "one", "tags": ["a", "b"], "x": NSNull()], ["n": 2, "t": "two", "tags": ["b"], "x": 1.5],
      ["n": 3, "t": "three", "tags": [String](), "x": 3], ["n": 4, "t": NSNull(), "x": "text", "flag": true],
    ]
  }

  func code(_ body: () async throws -> Any) async -> String? {
    do {
      _ = try await body()
      return nil
    } catch {
      return (error as? KizunaSyncError)?.code
    }
  }

  @Test func filtersSelectRows() async throws {
    let t = try await facts(Self.rows)
    #expect(numbers(try await t.select().eq("n", 2).execute()) == [2])
    #expect(numbers(try await t.select().neq("t", "one").execute()) == [2, 3])
    #expect(numbers(try await t.select().gt("n", 1).lte("n", 3).execute()) == [2, 3])
    #expect(numbers(try await t.select().gte("n", 4).execute()) == [4])
    #expect(numbers(try await t.select().lt("n", 2).execute()) == [1])
    #expect(numbers(try await t.select().like("t", "t%").execute()) == [2, 3])
    #expect(numbers(try await t.select().ilike("t", "T*").execute()) == [2, 3])
    #expect(numbers(try await t.select().is("t", nil).execute()) == [4])
    #expect(numbers(try await t.select().is("flag", true).execute()) == [4])
    #expect(numbers(try await t.select().in("n", [1, 4, 9]).execute()) == [1, 4])
    #expect(numbers(try await t.select().notIn("n", values: [1, 4]).execute()) == [2, 3])
    #expect(numbers(try await t.select().contains("tags", ["b"]).execute()) == [1, 2])
    #expect(numbers(try await t.select().containedBy("tags", ["b"]).execute()) == [2, 3])
    #expect(numbers(try await t.select().overlaps("tags", value: ["a", nil]).execute()) == [1])
    #expect(
      numbers(try await t.select().or([KizunaSyncQuery.eq("n", 1), KizunaSyncQuery.eq("n", 4)]).execute()) == [1, 4])
    #expect(
      numbers(try await t.select().and([KizunaSyncQuery.gt("n", 1), KizunaSyncQuery.lt("n", 3)]).execute()) == [2])
    #expect(numbers(try await t.select().not(KizunaSyncQuery.eq("n", 1)).execute()) == [2, 3, 4])
    #expect(numbers(try await t.select().match(["t": "one", "n": 1]).execute()) == [1])
    #expect(numbers(try await t.select().match([:]).execute()) == [1, 2, 3, 4])
    #expect(numbers(try await t.select().match("t", pattern: "^t").execute()) == [2, 3])
    #expect(numbers(try await t.select().imatch("t", pattern: "^T").execute()) == [2, 3])
    #expect(numbers(try await t.select().likeAllOf("t", patterns: ["t%", "%o"]).execute()) == [2])
    #expect(numbers(try await t.select().likeAnyOf("t", patterns: ["o%", "%o"]).execute()) == [1, 2])
    #expect(numbers(try await t.select().iLikeAllOf("t", patterns: ["T%", "%O"]).execute()) == [2])
    #expect(numbers(try await t.select().iLikeAnyOf("t", patterns: ["O%", "%O"]).execute()) == [1, 2])
    #expect(numbers(try await t.select().isDistinct("t", value: "one").execute()) == [2, 3, 4])
    #expect(numbers(try await t.select().search("tw").execute()) == [2])
    #expect(numbers(try await t.select().search("t", columns: ["t"]).execute()) == [2, 3])
    #expect(numbers(try await t.select().textSearch("t", "two").execute()) == [2])
    #expect(numbers(try await t.select().filter("n", operator: "gt", value: "2").execute()) == [3, 4])
    #expect(numbers(try await t.select().filter("n", operator: "not.in", value: "(1,2)").execute()) == [3, 4])
    #expect(numbers(try await t.select().filter("t", operator: "in", value: "(one,\"two\")").execute()) == [1, 2])
    #expect(numbers(try await t.select().filter("t", operator: "not.is", value: "null").execute()) == [1, 2, 3])
    await t.close()
  }

  @Test func orderLimitAndRange() async throws {
    let t = try await facts(Self.rows)
    #expect(numbers(try await t.select().order("t").execute()) == [1, 3, 2, 4])
    #expect(numbers(try await t.select().order("t", ascending: false).execute()) == [4, 2, 3, 1])
    #expect(numbers(try await t.select().order("t", nullsFirst: true).execute()) == [4, 1, 3, 2])
    #expect(numbers(try await t.select().limit(2).execute()) == [1, 2])
    #expect(numbers(try await t.select().limit(0).execute()) == [])
    #expect(numbers(try await t.select().range(from: 1, to: 2).execute()) == [2, 3])
    #expect(numbers(try await t.select().range(from: 1, to: 0).execute()) == [])
    #expect(numbers(try await t.select().range(from: 1, to: 2).limit(1).execute()) == [2])
    #expect(await code { try await t.select().range(from: 2, to: 0).execute() } == "LOCAL_UNSUPPORTED")
    #expect(await code { try await t.select().range(from: -1, to: 0).execute() } == "LOCAL_UNSUPPORTED")
    #expect(await code { try await t.select().limit(-1).execute() } == "LOCAL_UNSUPPORTED")
    await t.close()
  }

  @Test func projectionsAndShapes() async throws {
    let t = try await facts(Self.rows)
    let row = try #require(try await t.select(" t , x,, nothing").eq("n", 1).single() as? [String: Any])
    #expect(Set(row.keys) == ["t", "x", "nothing"])
    #expect(row["x"] is NSNull)
    #expect(row["nothing"] is NSNull)
    let stripped = try await t.select("t,x").eq("n", 1).stripNulls().single() as? [String: Any]
    #expect(stripped.map { Set($0.keys) } == ["t"])
    let real = try await t.select("x").eq("n", 2).single() as? [String: Any]
    #expect(real?["x"] as? Double == 1.5)
    // What was never written is absent, what was written as null is null.
    let last = try #require(try await t.select().eq("n", 4).single() as? [String: Any])
    #expect(last["t"] is NSNull)
    #expect(last["flag"] as? Bool == true)
    #expect(last["tags"] == nil)
    #expect(await code { try await t.select("a(b)").execute() } == "LOCAL_UNSUPPORTED")
    #expect(await code { try await t.select("x:y").execute() } == "LOCAL_UNSUPPORTED")
    await t.close()
  }

  @Test func countsAndCardinality() async throws {
    let t = try await facts(Self.rows)
    let counted = try #require(try await t.select(count: .planned).gt("n", 1).limit(1).execute() as? [String: Any])
    #expect(counted["count"] as? Int == 3)
    #expect((counted["rows"] as? [[String: Any]])?.count == 1)
    let head = try #require(try await t.select(head: true).execute() as? [String: Any])
    #expect(head["count"] as? Int == 4)
    #expect(head["rows"] is NSNull)
    #expect(await code { try await t.select().single() } == "LOCAL_CONSTRAINT")
    #expect(await code { try await t.select().eq("n", 9).single() } == "LOCAL_CONSTRAINT")
    #expect(try await t.select().eq("n", 9).maybeSingle() is NSNull)
    #expect(await code { try await t.select().maybeSingle() } == "LOCAL_CONSTRAINT")
    #expect((try await t.select().limit(1).single() as? [String: Any])?["n"] as? Int == 1)
    await t.close()
  }

  @Test func plansAnswerLikeChains() async throws {
    let t = try await facts(Self.rows)
    let client = t.owner
    #expect(numbers(try await client.query(table: "facts")) == [1, 2, 3, 4])
    let one =
      try await client.query(
        table: "facts", plan: KizunaSyncQuery.single(filters: [KizunaSyncQuery.eq("n", 3)])) as? [String: Any]
    #expect(one?["t"] as? String == "three")
    #expect(
      try await client.query(table: "facts", plan: KizunaSyncQuery.maybeSingle(filters: [KizunaSyncQuery.eq("n", 9)]))
        is NSNull)
    let counted =
      try await client.query(table: "facts", plan: ["limit": 1, "offset": 1, "count": "exact"])
      as? [String: Any]
    #expect(numbers(counted?["rows"] as Any) == [2])
    #expect(counted?["count"] as? Int == 4)
    #expect(await code { try await client.query(table: "facts", plan: ["what": 1]) } == "LOCAL_UNSUPPORTED")
    #expect(await code { try await client.query(table: "nothing") } == "UNKNOWN_TABLE")
    await t.close()
  }

  @Test func updatesAndDeletesTouchWhatTheyName() async throws {
    let t = try await facts(Self.rows)
    #expect(try await t.update(["t": "changed"]).gt("n", 2).execute() == ["3", "4"])
    #expect(numbers(try await t.select().eq("t", "changed").execute()) == [3, 4])
    let updated = try await t.update(["new": true]).in("n", [1, 2]).select("n,new").execute() as? [[String: Any]]
    #expect(updated?.compactMap { $0["new"] as? Bool } == [true, true])
    let removed = try await t.delete().eq("n", 1).select().single() as? [String: Any]
    #expect(removed?["t"] as? String == "one")
    #expect(try await t.delete().eq("n", 1).select().maybeSingle() is NSNull)
    #expect(try await t.delete().eq("n", 1).execute() == [])
    #expect(numbers(try await t.select().execute()) == [2, 3, 4])
    try await t.update([:], transforms: ["n2": ["op": "increment", "by": 5]]).eq("n", 2).execute()
    #expect((try await t.select().eq("n", 2).single() as? [String: Any])?["n2"] as? Int == 5)
    #expect(
      try await t.owner.applyWhere(
        table: "facts", op: .update, filters: [KizunaSyncQuery.gte("n", 3)], columns: ["t": "x"]) == ["3", "4"])
    await t.close()
  }

  @Test func aWriteThatNamesNothingOrTooMuchWritesNothing() async throws {
    let t = try await facts(Self.rows)
    let depth = try await t.owner.outboxDepth()
    #expect(await code { try await t.update(["t": "x"]).execute() } == "LOCAL_UNSUPPORTED")
    #expect(await code { try await t.delete().match([:]).execute() } == "LOCAL_UNSUPPORTED")
    #expect(await code { try await t.delete().and([]).execute() } == "LOCAL_UNSUPPORTED")
    #expect(await code { try await t.delete().or([]).execute() } == "LOCAL_UNSUPPORTED")
    #expect(
      await code { try await t.owner.applyWhere(table: "facts", op: .delete, filters: []) } == "LOCAL_UNSUPPORTED")
    #expect(await code { try await t.delete().gt("n", 1).maxAffected(2).execute() } == "LOCAL_CONSTRAINT")
    #expect(await code { try await t.delete().eq("n", 1).maxAffected(-1).execute() } == "LOCAL_UNSUPPORTED")
    #expect(await code { try await t.update(["t": "x"]).gt("n", 1).select().single() } == "LOCAL_CONSTRAINT")
    #expect(await code { try await t.update(["t": "x"]).gt("n", 1).select().maybeSingle() } == "LOCAL_CONSTRAINT")
    #expect(await code { try await t.update(["n": 9]).eq("n", 1).execute() } == "LOCAL_CONSTRAINT")
    // One write of several that fails undoes them all.
    #expect(
      await code {
        try await t.update([:], transforms: ["t": ["op": "arrayUnion", "values": ["x"]]]).gte("n", 1).execute()
      } == "LOCAL_CONSTRAINT")
    #expect(try await t.owner.outboxDepth() == depth)
    #expect(numbers(try await t.select().execute()) == [1, 2, 3, 4])
    await t.close()
  }

  @Test func theFirstRefusalIsThrownWhenTheChainRuns() async throws {
    let t = try await facts(Self.rows)
    let chain = t.select().dryRun().eq("n", Date()).limit(-1)
    let error = await #expect(throws: KizunaSyncError.self) { try await chain.execute() }
    #expect(error?.message.contains("dryRun") == true)
    for refused in [
      t.select().geojson(), t.select().setHeader(name: "a", value: "b"), t.select().explain(),
      t.select().filter("n", operator: "near", value: "1"), t.select().match("t", pattern: "("),
      t.select().not(["kind": "what"]),
    ] {
      #expect(await code { try await refused.execute() } == "LOCAL_UNSUPPORTED")
    }
    #expect(await code { try await t.update(["t": Date()]).eq("n", 1).execute() } == "LOCAL_UNSUPPORTED")
    #expect(numbers(try await t.select().retry(enabled: true).eq("n", 1).execute()) == [1])
    await t.close()
  }

  @Test func softDeletedRowsAreOutOfSight() async throws {
    let t = try await facts([["n": 1], ["n": 2], ["n": 3]], config: .init(softDeleteColumn: "gone", key: ["n"]))
    #expect(try await t.delete().gte("n", 2).execute() == ["2", "3"])
    #expect(numbers(try await t.select().execute()) == [1])
    let all = try await t.select().includeDeleted().order("n").execute() as? [[String: Any]]
    #expect(all?.count == 3)
    let stamps = Set(all?.compactMap { $0["gone"] as? String } ?? [])
    #expect(stamps.count == 1)
    #expect(try await t.update(["v": 1]).gte("n", 1).execute() == ["1"])
    #expect(
      await code { try await t.owner.apply(table: "facts", pk: "1", op: .delete) } == "SOFT_DELETE_VIOLATION")
    await t.close()
  }

  @Test func csvFollowsTheRFC() async throws {
    let t = try await facts([["n": 1, "t": "a,b"], ["n": 2, "t": "say \"hi\"\n"], ["n": 3, "tags": ["x"]]])
    #expect(
      try await t.select("n,t").csv() == "n,t\r\n1,\"a,b\"\r\n2,\"say \"\"hi\"\"\n\"\r\n3,")
    #expect(try await t.select().eq("n", 3).csv() == "n,tags\r\n3,\"[\"\"x\"\"]\"")
    await t.close()
  }

  @Test func keysAreSpelledTheirWay() async throws {
    let t = try await facts([], config: .init())
    try await t.insert(["v": 1])
    let row = try #require(try await t.select().single() as? [String: Any])
    let id = try #require(row["id"] as? String)
    #expect(RandomUUID.isWellFormed(id))
    #expect(try await t.update(["v": 2]).eq("id", id.uppercased()).execute() == [id])
    #expect(await code { try await t.insert(["id": id.uppercased(), "v": 3]) } == "LOCAL_CONSTRAINT")
    await t.close()
  }

  @Test func pullOnlyTablesAreNotWritten() async throws {
    let t = try await facts([], config: .init(syncMode: .pullOnly))
    #expect(await code { try await t.insert(["v": 1]) } == "LOCAL_UNSUPPORTED")
    await t.close()
  }
}

extension KizunaSyncTable {
  /// The client behind the table, which these tests let go of.
  var owner: KizunaSyncClient { client }
  func close() async { await owner.dispose() }
}
