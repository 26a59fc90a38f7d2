import HostKit
import Testing

@testable import KizunaSync

@Suite struct QueryPlanParserTests {
  @Test func theShorthandParsesToWhatItSays() throws {
    let plan = KizunaSyncQuery.plan(
      filters: [KizunaSyncQuery.eq("a", 1), KizunaSyncQuery.not(KizunaSyncQuery.is("b", nil))],
      order: [KizunaSyncQuery.order("a", ascending: false, nullsFirst: false)], limit: 3, projection: ["a"],
      cardinality: "maybeSingle", includeDeleted: true)
    let parsed = try QueryPlanParser.plan(PlainValue.json(from: plan, at: "plan"))
    #expect(parsed.filters == [.compare("a", .eq, 1), .not(.isValue("b", nil))])
    #expect(parsed.orders == [.init(column: "a", ascending: false, nullsFirst: false)])
    #expect(parsed.limit == 3)
    #expect(parsed.projection == ["a"])
    #expect(parsed.cardinality == .maybeSingle)
    #expect(parsed.includeDeleted)
  }

  @Test func everyKindHasAShorthandOrANode() throws {
    let nodes: [[String: Any]] = [
      KizunaSyncQuery.neq("a", 1), KizunaSyncQuery.gt("a", 1), KizunaSyncQuery.gte("a", 1), KizunaSyncQuery.lt("a", 1),
      KizunaSyncQuery.lte("a", 1), KizunaSyncQuery.like("a", "x%"), KizunaSyncQuery.ilike("a", "x%"),
      KizunaSyncQuery.in("a", [1, "b"]), KizunaSyncQuery.contains("a", ["x"]), KizunaSyncQuery.containedBy("a", ["x"]),
      KizunaSyncQuery.and([]), KizunaSyncQuery.or([]), KizunaSyncQuery.search("x", columns: ["a"]),
      KizunaSyncQuery.textSearch("a", "x", type: .websearch), ["kind": "regexMatch", "column": "a", "pattern": "x"],
      ["kind": "regexIMatch", "column": "a", "pattern": "x"], ["kind": "isDistinct", "column": "a", "value": 1],
      ["kind": "overlaps", "column": "a", "value": [1]],
    ]
    for node in nodes {
      #expect(throws: Never.self) { try QueryPlanParser.predicate(PlainValue.json(from: node, at: "node")) }
    }
  }

  @Test(
    arguments: [
      (["kind": "near", "column": "a"], "near"), (["kind": "eq", "column": "a"], "value"),
      (["kind": "eq", "column": "a", "value": 1, "colour": 2], "colour"), (["column": "a"], "kind"),
      (["kind": "like", "column": "a", "pattern": 1], "pattern"), (["kind": "is", "column": "a", "value": 1], "is"),
      (["kind": "regexMatch", "column": "a", "pattern": "("], "pattern"),
    ] as [([String: JSONValue], String)])
  func aNodeThatIsNotUnderstoodIsAnError(node: [String: JSONValue], named: String) throws {
    let error = try #require(throws: KizunaSyncError.self) { try QueryPlanParser.predicate(node) }
    #expect(error.code == "LOCAL_UNSUPPORTED")
    #expect(error.message.contains(named))
  }

  @Test(
    arguments: [
      (["limt": 1], "limt"), (["limit": -1], "limit"), (["offset": -1], "offset"),
      (["cardinality": "two"], "cardinality"),
      (["orders": [["column": "a", "direction": "up"]]], "direction"), (["count": "guess"], "count"),
      (["filters": ["x"]], "filters"),
    ] as [([String: JSONValue], String)])
  func aPlanThatIsNotUnderstoodIsAnError(plan: [String: JSONValue], named: String) throws {
    let error = try #require(throws: KizunaSyncError.self) { try QueryPlanParser.plan(plan) }
    #expect(error.code == "LOCAL_UNSUPPORTED")
    #expect(error.message.contains(named))
  }

  @Test(arguments: [
    ("[]", false), ("[{\"kind\":\"and\",\"filters\":[]}]", false),
    ("[{\"kind\":\"search\",\"query\":\"  \"}]", false), ("[{\"kind\":\"search\",\"query\":\"x\"}]", true),
    ("[{\"kind\":\"textSearch\",\"column\":\"a\",\"query\":\" \"}]", false),
    ("[{\"kind\":\"textSearch\",\"column\":\"a\",\"query\":\"x\"}]", true),
    ("[{\"kind\":\"eq\",\"column\":\"a\",\"value\":1}]", true), ("[{\"kind\":\"or\",\"filters\":[]}]", false),
    (
      "[{\"kind\":\"or\",\"filters\":[{\"kind\":\"and\",\"filters\":[]},{\"kind\":\"eq\",\"column\":\"a\",\"value\":1}]}]",
      false
    ),
  ])
  func aFilterThatNamesNothingIsKnown(filters: String, isNaming: Bool) throws {
    let parsed = try QueryPlanParser.filters(JSONValue(parsing: filters), in: "filters")
    #expect(Predicate.and(parsed).isNaming == isNaming)
  }

  @Test func uuidsAreSettledOnKeyColumnsOnly() {
    let upper: JSONValue = "0B6C0000-0000-4000-8000-00000000000A"
    let lower: JSONValue = "0b6c0000-0000-4000-8000-00000000000a"
    let filter = Predicate.or([.compare("id", .eq, upper), .isIn("id", [upper]), .compare("other", .eq, upper)])
    #expect(
      filter.settlingKeys(["id"])
        == .or([.compare("id", .eq, lower), .isIn("id", [lower]), .compare("other", .eq, upper)]))
  }
}
