import Foundation
import HTTPClient
import HostKit
import KizunaSyncTestSupport
import SyncServer
import Testing

@testable import KizunaSync

/// Whatever a client is doing when it is disposed of: afterwards it holds nothing, its files can be deleted, and nothing
/// makes them again.
@Suite struct TeardownTests {
  enum Moment: CaseIterable, Sendable {
    case opened, synced, queued
    /// A request is on its way, or its answer is.
    case pushing, pushed, pulling, pulled
    /// Pages wait for the last one.
    case staged
    /// The server forgot the checkpoint, and everything is being read again.
    case rehydrating
    /// Another program holds the write lock, and a run waits for it.
    case locked
    /// Sync is blocked for good.
    case blocked
    /// A subscriber is in the middle of an event.
    case inEvent
    /// A scheduler runs it.
    case scheduled
  }

  private struct World {
    let path: String
    let server = SyncServer(configuration: .init(tables: ["todos": SyncTable(bucketColumn: "owner_id")]))
    let transport: SyncServerTransport
    let client: KizunaSyncClient

    init(_ folder: String) async throws {
      path = folder + "/replica.db"
      transport = SyncServerTransport(server)
      client = KizunaSyncClient(http: transport)
      for index in 0..<5 { try await server.upsert("todos", "s\(index)", ["owner_id": .string(owner)]) }
      try await client.create(
        KizunaSyncClientConfig(
          tables: ["todos": .init(bucket: .byOwner("owner_id"))], databasePath: path,
          remote: .init(url: "http://127.0.0.1:1", publishableKey: "key", accessToken: TestToken.user(owner)),
          defaultLimit: 2))
    }

    func queue() async throws {
      try await client.apply(table: "todos", pk: "mine", op: .insert, columns: ["id": "mine"])
    }
  }

  /// Brings the client there.
  /// - Returns: what is still going on, to be waited for after the end.
  private func reach(_ moment: Moment, _ world: World) async throws -> Task<Void, Never>? {
    let client = world.client
    func running(_ held: HeldCall) async -> Task<Void, Never> {
      let task = Task { _ = try? await client.sync() }
      await held.reached()
      return task
    }
    switch moment {
    case .opened: return nil
    case .synced: try await client.sync()
    case .queued: try await world.queue()
    case .pushing, .pushed:
      try await world.queue()
      return await running(
        world.transport.faults.holdNext(moment == .pushing ? .beforeServer : .beforeAnswer, path: "push"))
    case .pulling, .pulled:
      return await running(
        world.transport.faults.holdNext(moment == .pulling ? .beforeServer : .beforeAnswer, path: "pull"))
    case .staged: try await client.pullOnce()
    case .rehydrating:
      try await client.sync()
      try await world.server.delete("todos", "s1")
      await #expect(throws: Never.self) { try await world.server.reap() }
      try await client.pullOnce()
      try await client.pullOnce()
    case .locked:
      let other = try PlainDatabase(world.path)
      try other.run("BEGIN IMMEDIATE")
      let task = Task { _ = try? await client.sync() }
      // The lock goes as late as that: SQLite's wait is not cut short, and ends by itself.
      try other.run("COMMIT")
      other.close()
      return task
    case .blocked: try await client.setAccessToken(TestToken.user("somebody else"))
    case .inEvent:
      let entered = DispatchSemaphore(value: 0)
      _ = try await client.on { _ in entered.signal() }
      try await world.queue()
      await withCheckedContinuation { continuation in
        HostThread.detach(name: "wait") {
          entered.wait()
          continuation.resume()
        }
      }
    case .scheduled:
      let scheduler = KizunaSyncScheduler(
        client: client, pollInterval: 3600, monitorPath: false, refreshSession: { true })
      let done = DispatchSemaphore(value: 0)
      _ = try await client.on { event in if case .localChanged = event { done.signal() } }
      scheduler.start()
      await withCheckedContinuation { continuation in
        HostThread.detach(name: "wait") {
          done.wait()
          continuation.resume()
        }
      }
      scheduler.stop()
      #expect(scheduler.health().nextAttemptAt == nil)
    }
    return nil
  }

  /// Files of the folder that this process has open, deleted ones too.
  private func openFiles(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { name in
      let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")
      return target.flatMap { $0.hasPrefix(folder) ? $0 : nil }
    }
  }

  @Test(arguments: Moment.allCases)
  func theFilesCanBeDeleted(moment: Moment) async throws {
    try await withScratchFolder { folder in
      let world = try await World(folder)
      let task = try await reach(moment, world)
      #expect(try !openFiles(in: folder).isEmpty)
      await world.client.dispose()
      // Nothing is open and nobody holds the lock, before the call that was cut off has returned, too.
      #expect(try openFiles(in: folder) == [])
      #expect(DatabaseLock.holder(ofDatabase: world.path) == nil)
      for file in try FileManager.default.contentsOfDirectory(atPath: folder) {
        try FileManager.default.removeItem(atPath: folder + "/" + file)
      }
      await task?.value
      await world.client.dispose()
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
      let error = await #expect(throws: KizunaSyncError.self) { try await world.client.sync() }
      #expect(error?.code == "ENGINE_UNAVAILABLE")
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [])
    }
  }

  /// What was not sent is still there for the next client, when the files are not deleted.
  @Test(arguments: [Moment.queued, .pushing, .pushed])
  func whatWasNotAcknowledgedIsKept(moment: Moment) async throws {
    try await withScratchFolder { folder in
      let world = try await World(folder)
      let task = try await reach(moment, world)
      await world.client.dispose()
      await task?.value
      #expect(try KizunaSyncReplicaStatus.read(databasePath: world.path).outboxDepth == 1)
    }
  }
}
