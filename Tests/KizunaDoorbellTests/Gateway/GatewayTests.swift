import Glibc
import HostKit
import KizunaDoorbell
import KizunaSync
import LocalStack
import SyncServer
import Testing

/// The gateway as a library, over real sockets and a real file, in one process with the development server.
@Suite struct GatewayTests {
  private func withStack(_ body: (LocalStack, String) async throws -> Void) async throws {
    var template = Array("/tmp/kizuna-gateway-XXXXXX".utf8CString)
    _ = try #require(mkdtemp(&template))
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let stack = try await LocalStack.start(
      LocalStackConfiguration(
        tables: ["todos": SyncTable(bucketColumn: "owner_id", includesKeyColumns: true)],
        users: [.init(email: "ann@example.com", password: "pw")]))
    do {
      try await body(stack, folder)
      try await stack.stop()
    } catch {
      try await stack.stop()
      throw error
    }
    _ = await (try ChildProcess(executable: "/bin/rm", arguments: ["-rf", folder])).ending()
  }

  private func configuration(
    _ stack: LocalStack, _ database: String, password: String = "pw"
  ) throws -> GatewayConfiguration {
    GatewayConfiguration(
      url: try ServerURL(stack.url), publishableKey: ConfigurationSecret(literal: stack.publishableKey),
      database: database,
      tables: ["todos": TableDeclaration(bucket: .owner(column: "owner_id"), columns: ["title": .text])],
      session: .password(email: "ann@example.com", password: ConfigurationSecret(literal: password)))
  }

  @Test func aRingBecomesARowAndIsTraced() async throws {
    try await withStack { stack, folder in
      let (traces, continuation) = AsyncStream.makeStream(of: RingTrace.self)
      let reader = Gateway(try configuration(stack, folder + "/b.db")) { continuation.yield($0) }
      try await reader.start()
      for await status in reader.connection.statusUpdates where status.isReady { break }
      let writer = Gateway(try configuration(stack, folder + "/a.db"))
      try await writer.start()
      try await writer.client.from("todos").insert(["title": "x"])

      var iterator = traces.makeAsyncIterator()
      let trace = try #require(await iterator.next())
      #expect(trace.isOrdered)
      let rows = try await reader.client.from("todos").select().execute() as? [[String: Any]]
      #expect(rows?.count == 1)
      #expect(rows?.first?["title"] as? String == "x")
      await writer.stop()
      await reader.stop()
      // Nothing holds the files any more.
      #expect(KizunaSyncReplicaStatus.holder(ofDatabase: folder + "/a.db") == nil)
      #expect(KizunaSyncReplicaStatus.holder(ofDatabase: folder + "/b.db") == nil)
      await reader.stop()
    }
  }

  private func failure(of gateway: Gateway) async -> GatewayError.Kind? {
    do throws(GatewayError) {
      try await gateway.start()
      await gateway.stop()
      return nil
    } catch { return error.kind }
  }

  @Test func aStartThatFailsLeavesNothingBehind() async throws {
    try await withStack { stack, folder in
      let path = folder + "/a.db"
      #expect(await failure(of: Gateway(try configuration(stack, path, password: "no"))) == .authentication)
      #expect(KizunaSyncReplicaStatus.holder(ofDatabase: path) == nil)
      #expect(await failure(of: Gateway(try configuration(stack, folder + "/none/a.db"))) == .database)

      let first = Gateway(try configuration(stack, path))
      try await first.start()
      #expect(await failure(of: Gateway(try configuration(stack, path))) == .locked)
      await first.stop()
      #expect(await failure(of: Gateway(try configuration(stack, path))) == nil)
    }
  }

  @Test func aSingleSyncTellsWhatWasDelivered() async throws {
    try await withStack { stack, folder in
      let settings = try configuration(stack, folder + "/a.db")
      let summary = try await SingleSync.run(settings)
      #expect(summary.isDelivered)
      #expect(summary.outboxDepth == 0 && summary.rejected == 0 && summary.softBlock == nil)
    }
  }
}
