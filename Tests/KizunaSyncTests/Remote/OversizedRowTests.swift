import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// A row that is too large for any page is told by its key.
@Suite struct OversizedRowTests {
  private static let heads: [(String, String?, String?)] = [
    (#"{"rows":[{"table":"notes","pk":"a,\"b","row":{"body":"xxxx"#, "notes", #"a,"b"#),
    // The order in which PostgreSQL prints jsonb.
    (#"{"rows": [{"pk": "a", "row": {"body": "xxxx"#, nil, "a"),
    (#"{"cursor":"7","rows":[{"pk":"a","seq":"1","table":"notes","row":{"#, "notes", "a"),
    (#"{"rows":[{"row":{"pk":"inner","body":"xxxx"#, nil, nil), (#"{"rows":[{"pk":"cut"#, nil, nil), ("", nil, nil),
    (#"{"rows":[],"tombstones":["#, nil, nil), ("<html>", nil, nil),
  ]

  @Test(arguments: heads)
  func isFoundInWhatCame(head: String, table: String?, pk: String?) {
    let row = OversizedRow(head: Array(head.utf8))
    #expect(row?.table == table && row?.pk == pk)
  }

  /// Cuts answers off as a client does whose patience ends at `limit` bytes.
  private struct Capped: HTTPTransport {
    let inner: any HTTPTransport
    let limit: Locked<Int>

    nonisolated(nonsending) func send(_ request: HTTPRequest) async throws -> HTTPResponse {
      let response = try await inner.send(request)
      let limit = limit.withLock { $0 }
      guard response.body.count > limit else { return response }
      throw HTTPError(
        .tooLarge, "the answer is larger than \(limit) bytes",
        head: request.keepsHead ? Array(response.body.prefix(limit)) : [])
    }
  }

  @Test func theRunNamesItAndGoesOnWhenItIsSmaller() async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      for pk in ["a", "b", "c"] { try await file.serve(pk, ["title": .string(pk)]) }
      try await file.serve("b", ["title": .string(String(repeating: "surprise", count: 500))])
      let limit = Locked(2_000)
      let log = file.log
      let engine = try await SyncEngine.open(
        config: KizunaSyncClientConfig(
          tables: SyncedFile.tables, databasePath: file.path,
          remote: .init(url: "http://localhost", publishableKey: "key", accessToken: TestToken.user(owner))),
        http: Capped(inner: file.transport, limit: limit), clock: file.clock,
        log: HostLog(minimum: .info) { _, event, fields in
          log.withLock { $0.append((event, Dictionary(fields, uniquingKeysWith: { first, _ in first }))) }
        }, emit: { _ in }, onLoss: { _ in })
      for _ in 0..<2 {
        let error = await #expect(throws: KizunaSyncError.self) { try await engine.sync() }
        #expect(error?.code == "REMOTE")
        #expect(error?.message.contains("the row b of ") == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("surprise") == false)
      }
      #expect(file.text(of: "sync.row_too_large", "key") == "b")
      try await file.serve("b", ["title": "short"])
      try await engine.sync()
      #expect(try file.rows() == ["a:a", "b:short", "c:c"])
      // And the pages grow again.
      try await file.serve("d", ["title": "d"])
      try await engine.sync()
      #expect(file.transport.calls.last?.json?["limit"] != 1)
      await engine.dispose()
    }
  }
}
