import Foundation
import HostKit
import Testing

@testable import KizunaSync

/// A database that is copied or put back goes on as a client of its own, with its queue.
@Suite struct RestoredFilesTests {
  private func clientID(_ file: SyncedFile) throws -> String {
    try file.sql.texts("SELECT value FROM _kizunasync_meta WHERE key = 'client_id'").first ?? ""
  }

  private func withSyncedFile(_ body: (SyncedFile, String) async throws -> Void) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      try await file.serve("a", ["title": "one"])
      try await file.sync()
      try await body(file, clientID(file))
    }
  }

  @Test func theSameFileStaysTheSameClient() async throws {
    try await withSyncedFile { file, client in
      for _ in 0..<3 { try await file.sync() }
      #expect(try clientID(file) == client)
      #expect(!file.events.contains("store.copied"))
      #expect(try KizunaSyncReplicaStatus.read(databasePath: file.path).copiedAt == nil)
    }
  }

  @Test func aBackupThatIsPutBackIsAClientOfItsOwnAndKeepsItsQueue() async throws {
    try await withSyncedFile { file, client in
      try file.sql.run("INSERT INTO todos(id, title) VALUES ('c', 'queued')")
      try await file.engine { _ in }
      let backup = file.path + ".backup"
      try FileManager.default.copyItem(atPath: file.path, toPath: backup)
      try await file.sync()
      try await file.serve("b", ["title": "two"])
      try await file.server.delete("todos", "a")
      try await file.sync()

      try FileManager.default.removeItem(atPath: file.path)
      try FileManager.default.moveItem(atPath: backup, toPath: file.path)
      try await file.sync()
      #expect(try clientID(file) != client)
      #expect(file.text(of: "store.copied", "reason")?.contains("a backup that was put back") == true)
      #expect(try KizunaSyncReplicaStatus.read(databasePath: file.path).copiedAt == file.clock.wallMilliseconds)
      // The write it still holds was applied before, and is not applied twice.
      #expect(try file.rows() == ["b:two", "c:queued"])
      #expect(await file.server.rowCount("todos") == 2)
      let ids = file.transport.bodies(of: "push").flatMap { $0["batch"]?["mutations"]?.arrayValue ?? [] }
        .compactMap { $0["mutation_id"]?.stringValue }
      #expect(ids.count == 2 && Set(ids).count == 1)
      // Now it is this host's.
      let after = try clientID(file)
      try await file.sync()
      #expect(try clientID(file) == after)
    }
  }

  /// Its original has sent the insert, so that it and a delete are not nothing; whether the copy holds it in its queue or
  /// still in the journal.
  @Test(arguments: [false, true]) func aDeleteInABackupThatIsPutBackIsSent(isHarvested: Bool) async throws {
    try await withSyncedFile { file, _ in
      try file.sql.run("INSERT INTO todos(id, title) VALUES ('c', 'queued')")
      if isHarvested { try await file.engine { _ in } }
      let backup = file.path + ".backup"
      try file.sql.run("VACUUM INTO '\(backup)'")
      try await file.sync()
      #expect(await file.server.rowCount("todos") == 2)
      try FileManager.default.removeItem(atPath: file.path)
      try FileManager.default.moveItem(atPath: backup, toPath: file.path)
      try file.sql.run("DELETE FROM todos WHERE id = 'c'")
      try await file.sync()
      #expect(await file.server.row("todos", "c") == nil)
      #expect(try file.rows() == ["a:one"])
    }
  }

  @Test func aCopyOfARunningClientIsRecognisedOnceTheClientHasStopped() async throws {
    try await withSyncedFile { file, client in
      let backup = file.path + ".backup"
      try await file.engine { engine in
        try await engine.sync()
        try file.sql.run("VACUUM INTO '\(backup)'")
      }
      try FileManager.default.removeItem(atPath: file.path)
      try FileManager.default.moveItem(atPath: backup, toPath: file.path)
      try await file.sync()
      #expect(try clientID(file) != client)
    }
  }

  @Test func aCopyInAnotherPlaceIsAClientOfItsOwn() async throws {
    try await withSyncedFile { file, client in
      try await withScratchFolder { folder in
        let copy = SyncedFile(folder)
        try FileManager.default.copyItem(atPath: file.path, toPath: copy.path)
        try await copy.engine { _ in }
        #expect(try clientID(copy) != client)
        #expect(copy.text(of: "store.copied", "reason")?.contains("moved or copied here") == true)
      }
      try await file.sync()
      #expect(try clientID(file) == client)
    }
  }

  @Test func aFileThatReplacedTheOneInUseIsNotTakenForIt() async throws {
    try await withSyncedFile { file, client in
      try await file.engine { engine in
        try await engine.sync()
        try file.sql.run("VACUUM INTO '\(file.path).new'")
        rename(file.path + ".new", file.path)
        for await _ in file.losses { break }
      }
      try await file.sync()
      #expect(try clientID(file) != client)
    }
  }

  @Test func aCopyFromAnotherHostIsAClientOfItsOwn() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(path: folder + "/a.db")
      let file = InstanceFile(folder + "/a.db")
      let client = try fixture.replica.clientID()
      try fixture.replica.recogniseInstance(besides: file, machine: "one")
      #expect(try fixture.replica.clientID() == client)
      try fixture.replica.recogniseInstance(besides: file, machine: "two")
      #expect(try fixture.replica.clientID() != client)
      #expect(fixture.warnings.withLock { $0 }.contains("store.copied"))
    }
  }

  @Test func aRenewalThatDoesNotReachTheFileBesideIsNoCopy() throws {
    try withScratchFolder { folder in
      let fixture = try ReplicaFixture(path: folder + "/a.db")
      let file = InstanceFile(folder + "/a.db")
      try fixture.replica.recogniseInstance(besides: file, machine: "one")
      let client = try fixture.replica.clientID()
      let known = try #require(file.read())
      for _ in 0..<3 {
        try fixture.replica.renewInstance(file)
        // As after a power cut, or on a full disk.
        try file.write(known)
        try fixture.replica.recogniseInstance(besides: file, machine: "one")
        try file.write(known)
        #expect(try fixture.replica.clientID() == client)
      }
    }
  }
}
