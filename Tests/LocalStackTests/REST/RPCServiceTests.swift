import HostKit
import Testing

@testable import LocalStack

@Suite struct RPCServiceTests {
  private let fixture: ServiceFixture

  init() throws { fixture = try ServiceFixture() }

  private func rpc(
    _ function: String, _ body: JSONValue, bearer: String?, headers: [String: String?] = [:]
  ) async -> StackResponse {
    await fixture.send("POST", "/rest/v1/rpc/\(function)", body, bearer: bearer, headers: headers)
  }

  @Test func pushesAndPulls() async {
    let pushed = await rpc("push", fixture.push(1), bearer: fixture.accessToken())
    #expect(pushed.status == 200)
    #expect(pushed.json["verdicts"]?[0]?["verdict"] == "applied")
    let pulled = await rpc("pull", fixture.pull, bearer: fixture.accessToken())
    #expect(pulled.json["rows"]?[0]?["row"] == ["id": "k1", "owner_id": .string(fixture.user), "title": "t"])
    #expect(pulled.json["cursor"] == .string("\(fixture.clock.wallMilliseconds * 1000 + 1)"))
  }

  @Test func anExpiredTokenIs401() async {
    let token = fixture.accessToken(lifetime: 60)
    fixture.clock.advance(seconds: 60)
    let response = await rpc("pull", fixture.pull, bearer: token)
    #expect(response.status == 401)
    #expect(response.json["code"] == "PGRST301")
    #expect(response.json["message"] == "JWT expired")
  }

  @Test func theKeyAloneIsNobody() async {
    let asBearer = await rpc("pull", fixture.pull, bearer: fixture.services.tokens.publishableKey)
    #expect((asBearer.status, asBearer.json["code"]) == (401, "42501"))
    let without = await rpc("pull", fixture.pull, bearer: nil)
    #expect((without.status, without.json["code"]) == (401, "42501"))
  }

  @Test(
    arguments: [
      ("pull", ["Content-Profile": "public"], 406, "PGRST106"), ("pull", ["Content-Profile": nil], 406, "PGRST106"),
      ("drop_all", [:], 404, "PGRST202"), ("pull", ["Content-Type": "text/plain"], 415, "PGRST102"),
      ("pull", ["Authorization": "Bearer a.b.c"], 401, "PGRST301"),
      ("pull", ["Authorization": "Basic x"], 401, "PGRST301"),
    ] as [(String, [String: String?], Int, String)])
  func refuses(function: String, headers: [String: String?], status: Int, code: String) async {
    let response = await rpc(function, fixture.pull, bearer: fixture.accessToken(), headers: headers)
    #expect(response.status == status)
    #expect(response.json["code"] == .string(code))
  }

  @Test func otherMethodsAndBodiesAreRefused() async {
    let get = await fixture.send("GET", "/rest/v1/rpc/pull", bearer: fixture.accessToken())
    #expect((get.status, get.json["code"]) == (405, "PGRST101"))
    let empty = await fixture.send("POST", "/rest/v1/rpc/pull", bearer: fixture.accessToken())
    #expect((empty.status, empty.json["code"]) == (400, "PGRST102"))
  }
}
