import HTTPClient
import HostKit
import PhoenixChannels
import SyncServer
import Testing

@testable import LocalStack

@Suite(.timeLimit(.minutes(5)))
struct LocalStackTests {
  private static let configuration = LocalStackConfiguration(
    tables: ["todos": SyncTable(bucketColumn: "owner_id"), "notes": SyncTable()],
    users: [LocalStackConfiguration.User(email: "ann@example.com", password: "pw")])

  private func withStack(_ body: (LocalStack) async throws -> Void) async throws {
    let stack = try await LocalStack.start(Self.configuration)
    do {
      try await body(stack)
    } catch {
      try? await stack.stop()
      throw error
    }
    try await stack.stop()
  }

  private func post(_ stack: LocalStack, _ path: String, _ body: JSONValue) async throws -> HTTPResponse {
    try await CurlHTTPClient().send(
      HTTPRequest(
        method: "POST", url: stack.url + path, headers: [HTTPHeader("apikey", stack.publishableKey)],
        body: JSONWriter.data(body)))
  }

  private func signIn(_ stack: LocalStack) async throws -> String {
    let response = try await post(
      stack, "/auth/v1/token?grant_type=password", ["email": "ann@example.com", "password": "pw"])
    return try JSONValue(parsing: response.body)["access_token"]?.stringValue ?? ""
  }

  @Test(arguments: PhoenixVersion.allCases)
  func aCommitRingsTheTablesItChanged(version: PhoenixVersion) async throws {
    try await withStack { stack in
      let token = try await signIn(stack)
      let client = HubClient(stack.realtimeURL, version, key: stack.publishableKey)
      #expect(await client.next() == .opened)
      for (ref, table) in [("1", "todos"), ("2", "notes")] {
        client.join("realtime:kizunasync:\(table)", ref: ref, token: token)
        #expect(await client.frame()?.replyStatus == "ok")
      }
      #expect(await stack.members(of: "kizunasync:todos") == 1)
      try await stack.server.upsert("todos", "t1", ["owner_id": .string(stack.users[0].id), "title": "x"])
      let frame = await client.frame()
      #expect(frame?.topic == "realtime:kizunasync:todos")
      #expect(frame?.userBroadcast?.event == "changed")
      #expect(frame?.json?["payload"]?["t"] == "todos")
      try await stack.server.upsert("notes", "n1", ["text": "x"])
      #expect(await client.frame()?.topic == "realtime:kizunasync:notes")
    }
  }

  @Test func theAnonymousKeyJoinsNoPrivateTopic() async throws {
    try await withStack { stack in
      await stack.changeRealtime { $0.channelErrorBackoff = 0 }
      let client = HubClient(stack.realtimeURL, .v2, key: stack.publishableKey)
      #expect(await client.next() == .opened)
      client.join("realtime:kizunasync:todos", token: nil)
      #expect(
        await client.frame()?.json?["response"]?["reason"]
          == "Unauthorized: You do not have permissions to read from this Channel topic: kizunasync:todos")
    }
  }

  @Test func faultsAreSwitchedOnAndOff() async throws {
    try await withStack { stack in
      await stack.refuseUpgrades(status: 503, body: "later", headers: [StackHeader("retry-after", "3")])
      #expect(
        await HubClient(stack.realtimeURL, .v2, key: stack.publishableKey).next() == .ended("refused 503 later"))
      await stack.refuseUpgrades(status: nil)
      let client = HubClient(stack.realtimeURL, .v2, key: stack.publishableKey)
      #expect(await client.next() == .opened)
      #expect(await stack.openSockets == 1)
      #expect(await stack.acceptedSockets == 1)
      await stack.closeSockets(code: 4001)
      #expect(await client.next() == .ended("closed 4001"))
      stack.setRequestFault { _ in StackResponse(status: 500) }
      let failed = try await post(stack, "/rest/v1/rpc/pull", [:])
      #expect(failed.status == 500)
      stack.setRequestFault(nil)
      let answered = try await post(stack, "/rest/v1/rpc/pull", [:])
      #expect(answered.status != 500)
    }
  }

  @Test func aPortInUseIsAnErrorThatLeavesNothingBehind() async throws {
    try await withStack { stack in
      var options = LocalStack.Options()
      options.port = stack.port
      let taken = options
      await #expect(throws: StackServerError.addressInUse("127.0.0.1:\(stack.port)")) {
        _ = try await LocalStack.start(Self.configuration, options: taken)
      }
    }
  }
}
