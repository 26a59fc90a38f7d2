import HostKit
import Testing

@testable import LocalStack

@Suite struct StackRouterTests {
  @Test(arguments: ["/rest/v1/rpc/pull", "/auth/v1/token"])
  func aKeyIsNeeded(path: String) async throws {
    let fixture = try ServiceFixture()
    let missing = await fixture.send("POST", path, [:], headers: ["apikey": nil])
    #expect((missing.status, missing.json["message"]) == (401, "No API key found in request"))
    let wrong = await fixture.send("POST", path, [:], headers: ["apikey": "wrong"])
    #expect((wrong.status, wrong.json["message"]) == (401, "Invalid API key"))
    let opaque = await fixture.send("POST", path, [:], headers: ["apikey": "sb_publishable_any"])
    #expect(opaque.json["message"] != "Invalid API key")
  }

  @Test func withoutAGatewayNoKeyIsNeeded() async throws {
    let fixture = try ServiceFixture(requiresAPIKey: false)
    let response = await fixture.send(
      "POST", "/rest/v1/rpc/pull", fixture.pull, bearer: fixture.accessToken(), headers: ["apikey": nil])
    #expect(response.status == 200)
  }

  @Test func tellsWhenEachSeqWasCommitted() async throws {
    let fixture = try ServiceFixture()
    let before = SystemClock.monotonic
    for n in 1...3 { try await fixture.services.server.upsert("todos", "k\(n)", ["owner_id": "u"]) }
    let last = await fixture.services.server.horizon
    let response = await fixture.send("GET", "/_localstack/commits", query: "after=\(last - 2)")
    let commits = try #require(response.json["commits"]?.arrayValue)
    #expect(commits.map { $0["seq"]?.stringValue } == ["\(last - 1)", "\(last)"])
    let times = commits.compactMap { $0["monotonic_ns"]?.intValue }
    #expect(times.allSatisfy { $0 >= before && $0 <= SystemClock.monotonic })
    #expect(times == times.sorted())
  }

  @Test func otherPathsAreNotFound() async throws {
    let fixture = try ServiceFixture()
    #expect(await fixture.send("GET", "/_localstack/health").json == ["ok": true])
    #expect(await fixture.send("GET", "/_localstack/secrets").status == 404)
    #expect(await fixture.send("GET", "/rest/v1/todos").status == 404)
    #expect(await fixture.send("POST", "/realtime/v1/api/broadcast").status == 404)
  }

  @Test func realtimeRequestsGoToItsHandler() async throws {
    struct Echo: StackHandler {
      func handle(_ request: StackRequest) async -> StackResponse {
        .json(["path": .string(request.path)], status: 202)
      }
    }
    let router = StackRouter(try ServiceFixture().services, realtime: Echo())
    let response = await router.handle(StackRequest(method: "POST", path: "/realtime/v1/api/broadcast"))
    #expect((response.status, response.json["path"]) == (202, "/realtime/v1/api/broadcast"))
  }
}
