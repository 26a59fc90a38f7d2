import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@Suite struct SyncServerTransportTests {
  private let user = "00000000-0000-4000-8000-a10000000001"
  private let server = SyncServer(configuration: .init(tables: ["todos": SyncTable(bucketColumn: "owner_id")]))

  private func request(_ function: String, _ body: JSONValue, headers: [String: String?] = [:]) -> HTTPRequest {
    var all = [
      "Authorization": "Bearer \(TestToken.user(user))", "Content-Type": "application/json",
      "Accept": "application/json", "Content-Profile": "kizunasync", "apikey": "key",
    ]
    for (name, value) in headers { all[name] = value }
    return HTTPRequest(
      method: "POST", url: "http://localhost:54321/rest/v1/rpc/\(function)",
      headers: all.map { HTTPHeader($0.key, $0.value) }, body: JSONWriter.data(body))
  }

  private var pull: JSONValue {
    [
      "buckets": [["table": "todos", "params": ["owner_id": .string(user)]]], "cursor": "0", "schema_version": 1,
    ]
  }

  private func insert(_ id: Int) -> JSONValue {
    [
      "batch": [
        "atomic": false,
        "mutations": [
          [
            "mutation_id": .string("00000000-0000-4000-8000-f1000000000\(id)"), "table": "todos",
            "pk": .string("k\(id)"),
            "op": "insert", "columns": ["owner_id": .string(user)],
          ]
        ],
      ], "last_mutation_id": nil, "schema_version": 1,
    ]
  }

  @Test func theTokensSubjectIsTheCaller() async throws {
    let transport = SyncServerTransport(server)
    try await server.upsert("todos", "mine", ["owner_id": .string(user)])
    try await server.upsert("todos", "theirs", ["owner_id": "somebody else"])
    let response = try await transport.send(request("pull", pull))
    let page = try JSONValue(parsing: response.body)
    #expect(response.status == 200)
    #expect(page["rows"]?.arrayValue?.map { $0["pk"] } == ["mine"])
    #expect(transport.bodies(of: "pull") == [pull])
  }

  @Test func aDroppedAnswerWasStillApplied() async throws {
    let transport = SyncServerTransport(server)
    transport.faults.dropNextAnswers(path: "rpc/push")
    await #expect(throws: HTTPError.self) { try await transport.send(request("push", insert(1))) }
    #expect(await server.row("todos", "k1") != nil)
    let retry = try await transport.send(request("push", insert(1)))
    #expect(try JSONValue(parsing: retry.body)["verdicts"]?[0]?["verdict"] == "applied")
    #expect(await server.horizon == 1)
  }

  @Test(
    arguments: [
      (["Content-Profile": nil], 406, "PGRST106"), (["Content-Type": "text/plain"], 415, "PGRST102"),
      (["Prefer": "return=minimal"], 400, "PGRST100"), (["Authorization": "Bearer sb_publishable_x"], 401, "PGRST301"),
      (["Authorization": nil], 401, "42501"), (["Accept": "text/csv"], 406, "PGRST107"),
    ] as [([String: String?], Int, String)])
  func refusesWhatTheServiceWouldRefuse(headers: [String: String?], status: Int, code: String) async throws {
    let response = try await SyncServerTransport(server).send(request("pull", pull, headers: headers))
    #expect(response.status == status)
    #expect(try JSONValue(parsing: response.body)["code"] == .string(code))
  }

  @Test func anUnknownArgumentFindsNoFunction() async throws {
    let response = try await SyncServerTransport(server).send(request("pull", ["cursors": "0"]))
    #expect(response.status == 404)
    #expect(try JSONValue(parsing: response.body)["code"] == "PGRST202")
  }
}
