import Foundation
import HostKit
import SyncServer
import Testing

@testable import LocalStack

/// What survives the end of the process, at whatever instant it comes.
@Suite struct LocalStackServicesTests {
  /// The directory as it is on disk right now, as after a SIGKILL.
  private func killed(_ folder: TemporaryFolder) throws -> TemporaryFolder {
    let copy = try TemporaryFolder()
    copy.remove()
    try FileManager.default.copyItem(atPath: folder.path, toPath: copy.path)
    return copy
  }

  @Test func anAcknowledgedPushSurvivesAKill() async throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let fixture = try ServiceFixture(directory: folder.path)
    for n in 1...3 {
      let response = await fixture.send(
        "POST", "/rest/v1/rpc/push", fixture.push(n), bearer: fixture.accessToken())
      #expect(response.status == 200)
    }
    _ = await fixture.send("POST", "/rest/v1/rpc/pull", fixture.pull, bearer: fixture.accessToken())
    let session = await fixture.signIn().json
    let before = await fixture.services.server.dump()

    let copy = try killed(folder)
    defer { copy.remove() }
    let after = try ServiceFixture(directory: copy.path)
    #expect(await after.services.server.dump() == before)
    #expect(before.contains("grant \(fixture.user) todos"))
    #expect(before.contains("verdict"))
    #expect(after.services.tokens.publishableKey == fixture.services.tokens.publishableKey, "the secret is kept")
    #expect(await after.refresh(try #require(session["refresh_token"]?.stringValue)).status == 200)
  }

  /// A server whose data are gone is another one: whoever has a cursor of it reads everything again.
  @Test(arguments: [1, 40])
  func cursorsOfAServerWhoseDataAreGoneExpire(changes: Int) async throws {
    func pull(_ fixture: ServiceFixture, _ cursor: String) async throws -> JSONValue {
      var request = try #require(fixture.pull.objectValue)
      request["cursor"] = .string(cursor)
      return await fixture.send(
        "POST", "/rest/v1/rpc/pull", .object(request), bearer: fixture.accessToken()
      ).json
    }
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let first = try ServiceFixture(directory: folder.path)
    for n in 1...20 { try await first.services.server.upsert("todos", "k\(n)", ["owner_id": .string(first.user)]) }
    let cursor = try #require(try await pull(first, "0")["cursor"]?.stringValue)
    #expect(try await pull(first, cursor)["signal"]?.isNull == true)
    // Killed and started again it is the same server.
    let copy = try killed(folder)
    defer { copy.remove() }
    #expect(try await pull(ServiceFixture(directory: copy.path), cursor)["signal"]?.isNull == true)

    let another = try ServiceFixture(clock: WallClock(milliseconds: first.clock.wallMilliseconds + 1))
    for n in 1...changes {
      try await another.services.server.upsert("todos", "n\(n)", ["owner_id": .string(another.user)])
    }
    #expect(try await pull(another, cursor)["signal"]?["type"] == "CHECKPOINT_EXPIRED")
    let fresh = try await pull(another, "0")
    #expect(fresh["rows"]?.arrayValue?.count == changes)
    #expect(try await pull(another, fresh["cursor"]?.stringValue ?? "")["signal"]?.isNull == true)
  }

  @Test func snapshotAndJournalTogetherAreTheState() async throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let fixture = try ServiceFixture(directory: folder.path)
    let server = fixture.services.server
    for n in 1...20 { try await server.upsert("todos", "k\(n)", ["owner_id": "u", "title": .string("\(n)")]) }
    try await fixture.services.compact()
    try await server.delete("todos", "k3")
    try await server.upsert("todos", "k4", ["title": "after the snapshot"])
    let before = await server.dump()

    let copy = try killed(folder)
    defer { copy.remove() }
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: copy.path).sorted() == [
        "journal-1.jsonl", "jwt-secret", "lock", "state.jsonl",
      ])
    let after = try ServiceFixture(directory: copy.path)
    #expect(await after.services.server.dump() == before)
    try await after.services.close()
    let last = try killed(copy)
    defer { last.remove() }
    #expect(await (try ServiceFixture(directory: last.path)).services.server.dump() == before)
  }

  @Test func oldTombstonesAreReapedAtTheStart() async throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let fixture = try ServiceFixture(directory: folder.path)
    try await fixture.services.server.upsert("todos", "k", ["owner_id": "u"])
    try await fixture.services.server.delete("todos", "k")
    let copy = try killed(folder)
    defer { copy.remove() }
    // This clock is the real one, months later.
    let later = try LocalStackServices(
      LocalStackConfiguration(tables: fixture.services.configuration.tables, directory: copy.path))
    let last = await fixture.services.server.horizon
    #expect(await later.server.dump() == "seq \(last), reaped to \(last)\n")
  }

  @Test func aHalfWrittenLineIsForgotten() async throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let fixture = try ServiceFixture(directory: folder.path)
    try await fixture.services.server.upsert("todos", "k1", ["owner_id": "u"])
    let before = await fixture.services.server.dump()
    try await fixture.services.server.upsert("todos", "k2", ["owner_id": "u"])

    let copy = try killed(folder)
    defer { copy.remove() }
    let journal = URL(fileURLWithPath: copy.path + "/journal-0.jsonl")
    try Data(contentsOf: journal).dropLast(5).write(to: journal)
    let after = try ServiceFixture(directory: copy.path)
    #expect(await after.services.server.dump() == before)
    try await after.services.server.upsert("todos", "k3", ["owner_id": "u"])
    let more = await after.services.server.dump()
    let third = try killed(copy)
    defer { third.remove() }
    #expect(await (try ServiceFixture(directory: third.path)).services.server.dump() == more)
  }

  /// Also the last line of a snapshot, which was whole once.
  @Test(arguments: ["journal-1.jsonl", "state.jsonl"])
  func aLineThatIsCutOffIsReported(name: String) async throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let fixture = try ServiceFixture(directory: folder.path)
    for n in 1...3 { try await fixture.services.server.upsert("todos", "k\(n)", ["owner_id": "u"]) }
    try await fixture.services.compact()
    for n in 4...6 { try await fixture.services.server.upsert("todos", "k\(n)", ["owner_id": "u"]) }
    let copy = try killed(folder)
    defer { copy.remove() }
    let file = URL(fileURLWithPath: copy.path + "/" + name)
    try Data(contentsOf: file).dropLast(5).write(to: file)
    let lines = Locked<[(String, [String: JSONValue])]>([])
    let log = HostLog(minimum: .warning) { _, event, fields in
      lines.withLock { $0.append((event, Dictionary(fields, uniquingKeysWith: { first, _ in first }))) }
    }
    let after = try LocalStackServices(
      LocalStackConfiguration(tables: fixture.services.configuration.tables, directory: copy.path), clock: WallClock(),
      log: log)
    let (event, fields) = try #require(lines.withLock { $0.first })
    #expect(event == "stack.line_cut_off" && fields["file"] == .string(copy.path + "/" + name))
    #expect(lines.withLock { $0.count } == 1)
    withExtendedLifetime(after) {}
  }

  /// It is left where a process died, or a disk was full, while the file was made.
  @Test(arguments: ["", "\n"])
  func anEmptySecretIsReplaced(text: String) throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let file = URL(fileURLWithPath: folder.path + "/jwt-secret")
    try Data(text.utf8).write(to: file)
    let fixture = try ServiceFixture(directory: folder.path)
    #expect(fixture.services.tokens.secret.count > 40)
    #expect(try String(contentsOf: file, encoding: .utf8) == fixture.services.tokens.secret + "\n")
  }

  @Test func aDirectoryInUseIsRefused() throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let first = try ServiceFixture(directory: folder.path)
    #expect(throws: StateDirectoryError.inUse(folder.path, processID: "\(getpid())")) {
      try ServiceFixture(directory: folder.path)
    }
    withExtendedLifetime(first) {}
  }

  /// Also while somebody still holds the closed services.
  @Test func aClosedDirectoryIsFreeAtOnce() async throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    let first = try ServiceFixture(directory: folder.path)
    try await first.services.close()
    let second = try ServiceFixture(directory: folder.path)
    #expect(throws: StateDirectoryError.self) { try ServiceFixture(directory: folder.path) }
    await #expect(throws: RPCError.self) { try await first.services.server.upsert("todos", "late", [:]) }
    withExtendedLifetime((first, second)) {}
  }

  @Test func aForeignFileIsRefused() throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    try Data("{\"format\":\"other\"}\n".utf8).write(to: URL(fileURLWithPath: folder.path + "/state.jsonl"))
    #expect(throws: StateDirectoryError.unreadable(path: folder.path + "/state.jsonl", line: 1)) {
      try ServiceFixture(directory: folder.path)
    }
  }

  @Test func aFileInTheWayIsNamed() throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    try Data().write(to: URL(fileURLWithPath: folder.path + "/file"))
    do {
      _ = try ServiceFixture(directory: folder.path + "/file")
      Issue.record("a file is no directory")
    } catch let error as StateDirectoryError {
      #expect(error.description.contains(folder.path))
    }
  }

  @Test func onlyItsOwnerReadsTheSecret() throws {
    let folder = try TemporaryFolder()
    defer { folder.remove() }
    _ = try ServiceFixture(directory: folder.path)
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.path + "/jwt-secret")
    #expect(attributes[.posixPermissions] as? Int == 0o600)
  }
}
