import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

@Suite struct RemoteTests {
  private func remote(_ http: ScriptedHTTP = ScriptedHTTP(), key: String = "key", schema: String? = nil) -> Remote {
    Remote(
      KizunaSyncRemoteConfig(url: "https://project.example//", publishableKey: key, schema: schema), http: http)
  }

  @Test func headersAreThoseOfTheContract() {
    let request = remote().request("pull", body: [], token: "token")
    #expect(request.method == "POST" && request.url == "https://project.example/rest/v1/rpc/pull")
    #expect(
      request.headers == [
        HTTPHeader("Authorization", "Bearer token"), HTTPHeader("apikey", "key"),
        HTTPHeader("Content-Type", "application/json"), HTTPHeader("Accept", "application/json"),
        HTTPHeader("Content-Profile", "kizunasync"),
      ])
    #expect(remote(key: "").request("pull", body: [], token: "t").header("apikey") == nil)
    #expect(remote(schema: "other").request("pull", body: [], token: "t").header("Content-Profile") == "other")
    #expect(request.timeout == .seconds(30) && request.connectTimeout == .seconds(10))
    #expect(request.maximumResponseBytes == 64 << 20)
  }

  @Test func aPullRequestLeavesUnsetMembersOut() throws {
    let request = PullRequest(
      buckets: [.init(table: "a", params: [:]), .init(table: "b", params: ["o": "u"])], cursor: "4:6", clientID: "c",
      schemaVersion: 2, limit: nil)
    #expect(
      String(decoding: request.body(), as: UTF8.self)
        == #"{"buckets":[{"params":{},"table":"a"},{"params":{"o":"u"},"table":"b"}],"client_id":"c","cursor":"4:6","schema_version":2}"#
    )
    var limited = request
    limited.limit = 7
    #expect(try JSONValue(parsing: limited.body())["limit"] == 7)
  }

  @Test func aPushRequestAlwaysHasLastMutationID() {
    var entry = OutboxEntry(seq: 1, mutationID: "m", table: "t", pk: "k\"", op: .update, columns: #"{"a":1.50}"#)
    let request = PushRequest(entries: [entry], lastMutationID: nil, clientID: "c", schemaVersion: 1)
    #expect(
      String(decoding: request.body(), as: UTF8.self)
        == #"{"batch":{"atomic":false,"mutations":[{"columns":{"a":1.50},"mutation_id":"m","op":"update","pk":"k\"","table":"t"}]},"client_id":"c","last_mutation_id":null,"schema_version":1}"#
    )
    entry.group = "g"
    entry.hlc = "h"
    entry.precondition = "{}"
    entry.transforms = "{}"
    let atomic = PushRequest(entries: [entry], lastMutationID: "l", clientID: "c", schemaVersion: 1)
    #expect(
      String(decoding: atomic.body(), as: UTF8.self)
        == #"{"batch":{"atomic":true,"mutations":[{"columns":{"a":1.50},"hlc":"h","mutation_id":"m","op":"update","pk":"k\"","precondition":{},"table":"t","transforms":{}}]},"client_id":"c","last_mutation_id":"l","schema_version":1}"#
    )
  }

  @Test(arguments: [
    ("22023", true), ("22P02", true), ("23505", true), ("42883", true), ("42501", false), ("P0001", true),
    ("P0002", false), ("0A000", true), ("KZP01", true), ("KZP02", true), ("KZP03", false), ("KZL01", true),
    ("KZL02", false), ("PGRST301", false), ("PGRST202", false), ("XX000", false), ("", false), ("229", false),
  ])
  func codesArePermanentByTheRule(code: String, isPermanent: Bool) {
    #expect(RemoteFailure.isPermanent(code) == isPermanent)
    let answer = RemoteFailure.answer(
      .json(["code": .string(code), "message": "words"], status: 400), function: "push")
    #expect(answer.error.code == (isPermanent ? "PERMANENT_TRANSPORT" : "REMOTE"))
    let named = code.isEmpty ? "" : ", \(code)"
    #expect(answer.error.message.hasPrefix("kizunasync.push failed: HTTP 400\(named): "))
    #expect(!answer.error.message.contains("words"))
  }

  /// In the place of a code may stand what was sent.
  @Test(arguments: ["sb_publishable_key", "eyJhbGciOiJIUzI1NiJ9", "a value", "22P02 (title)", "ABCDEFGHIJKLMNOPQ"])
  func whatIsNoCodeIsNotTakenForOne(code: String) {
    let answer = RemoteFailure.answer(.json(["code": .string(code)], status: 400), function: "push")
    #expect(answer.serverCode == nil)
    #expect(!answer.error.message.contains(code))
  }

  /// A network that wants a sign-in first answers everything with its page.
  @Test(arguments: ["<html>please sign in</html>", "[]", "", "not json"])
  func anotherProgramAtTheAddressIsNamed(body: String) {
    for read in [
      { _ = try PushReply(parsing: Array(body.utf8), answering: []) }, { _ = try PullPage(checking: Array(body.utf8)) },
    ] as [() throws -> Void] {
      let failure = #expect(throws: RemoteFailure.self) { try read() }
      #expect(failure?.error.code == "JSON")
      #expect(failure?.error.message.contains("another program answers at this address; check url") == true)
    }
  }

  @Test func answersThatAreNoPostgRESTErrorAreNamedByTheirStatus() {
    let page = HTTPResponse(status: 502, body: Array("<html>secret</html>".utf8))
    let failure = RemoteFailure.answer(page, function: "pull")
    #expect(failure.kind == .answered && failure.error.message.hasPrefix("kizunasync.pull failed: HTTP 502: "))
    #expect(!failure.error.message.contains("secret"))
    #expect(RemoteFailure.answer(HTTPResponse(status: 413), function: "pull").kind == .tooLarge)
    #expect(RemoteFailure.answer(HTTPResponse(status: 401), function: "pull").kind == .unauthorized)
    #expect(RemoteFailure.answer(HTTPResponse(status: 302), function: "pull").error.code == "REMOTE")
  }

  @Test func aBrokenConnectionIsRetryable() async throws {
    let http = ScriptedHTTP()
    http.faults.failNext()
    let failure = await #expect(throws: RemoteFailure.self) {
      _ = try await remote(http).call("pull", body: [], token: "t")
    }
    #expect(failure?.kind == .unreachable && failure?.isAnswer == false && failure?.error.code == "REMOTE")
  }

  private static let asked: [(String, String, [String], String, String)] = [
    ("push", "0A000", ["notes"], "table notes is not synchronised", "does not synchronise the table notes;"),
    ("push", "0A000", ["notes", "todos"], "table notes is not synchronised", "does not synchronise the table notes;"),
    ("push", "0A000", ["notes", "todos"], "no", "does not synchronise one of the tables notes, todos;"),
    ("push", "0A000", ["a", "b", "c", "d", "e"], "no", "does not synchronise a table of the request;"),
    ("pull", "KZL01", ["notes", "todos"], "table todos is pulled by owner", "the table todos is bucketed"),
    ("pull", "KZL01", ["note", "notes"], "table notes is pulled by owner", "the table notes is bucketed"),
    ("push", "KZP01", ["notes"], "", "the table notes is pull-only"),
    ("push", "P0001", ["notes"], "no more than 3 by ann@example.com", "the oldest write, of the table notes"),
    ("push", "22P02", ["notes"], "ann@example.com", "the oldest write, of the table notes"),
    ("pull", "22P02", ["notes"], "ann@example.com", "compare the buckets"),
    ("pull", "P0001", ["notes"], "ann@example.com", "the server's own rules refuse the call"),
  ]

  /// Of the tables that were asked for, the one that the server's text names; and never that text.
  @Test(arguments: asked)
  func theTableIsNamed(function: String, code: String, tables: [String], said: String, words: String) {
    let failure = RemoteFailure.answer(
      .json(["code": .string(code), "message": .string(said)], status: 400), function: function, tables: tables)
    #expect(failure.error.message.contains(words), "\(failure.error.message)")
    #expect(!failure.error.message.contains("ann@") && !failure.error.message.contains("see the oldest write"))
  }
}
