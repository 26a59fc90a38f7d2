import Foundation
import Glibc
import HostKit
import KizunaDoorbell
import KizunaSync
import LocalStack
import SyncServer
import Testing

/// The gateway as a library, over real sockets and a real file, in one process with the development server.
@Suite(.timeLimit(.minutes(5))) struct GatewayTests {
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

  /// Files of a folder that this process has open, by the name the link gives them.
  private func open(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap {
      try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
    }.filter { $0.hasPrefix(folder) }
  }

  /// When `stop` returns nothing of the gateway is left, at whatever moment it came: the files may go, and others may
  /// take their places.
  @Test func whenStopReturnsTheFilesMayBeDeleted() async throws {
    try await withStack { stack, folder in
      let place = folder + "/place"
      for moment in 0..<4 {
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
        let gateway = Gateway(try configuration(stack, place + "/a.db"))
        if moment == 0 {
          // In the middle of the start.
          async let started: Void = gateway.start()
          await gateway.stop()
          try? await started
          await gateway.stop()
        } else {
          try await gateway.start()
          if moment > 1 { try await gateway.client.from("todos").insert(["title": "number \(moment)"]) }
          // A run may be under way here, and a socket may be opening.
          if moment == 3 { for await status in gateway.connection.statusUpdates where status.isReady { break } }
          await gateway.stop()
        }
        #expect(try open(in: place) == [])
        try FileManager.default.removeItem(atPath: place)
      }
      // Nothing makes them again.
      #expect(!FileManager.default.fileExists(atPath: place))
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
