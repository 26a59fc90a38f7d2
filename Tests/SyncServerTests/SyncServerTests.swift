import HostKit
import SyncServer
import Testing

@Suite struct SyncServerTests {
  typealias F = ServerFixture

  private let configuration = SyncServerConfiguration(tables: [
    "todos": SyncTable(bucketColumn: "owner_id"), "notes": SyncTable(bucketColumn: "owner_id"),
  ])

  private func push(_ mutations: [JSONValue], atomic: Bool = false) -> JSONValue {
    [
      "batch": ["atomic": .bool(atomic), "mutations": .array(mutations)], "last_mutation_id": nil, "schema_version": 1,
    ]
  }

  private let pull: JSONValue = ["buckets": [F.bucket()], "cursor": "0", "schema_version": 1]

  @Test func reportsEachCommitOnceWithItsTables() async throws {
    let server = SyncServer(configuration: configuration)
    let commits = Locked<[SyncCommit]>([])
    await server.onCommit { commit in commits.withLock { $0.append(commit) } }
    let note = JSONValue.object(F.insert(3, "n").objectValue?.merging(["table": "notes"]) { $1 } ?? [:])
    _ = await server.push(push([F.insert(1, "a"), F.insert(2, "b"), note]), caller: .user(F.me))
    _ = await server.push(push([F.insert(1, "a")]), caller: .user(F.me))
    try await server.upsert("todos", "a", ["owner_id": .string(F.me)])
    _ = await server.push(push([F.insert(9, "z"), F.update(8, "ghost", ["n": 1])], atomic: true), caller: .user(F.me))
    _ = await server.pull(pull, caller: .user(F.me))
    _ = await server.pull(pull, caller: .user(F.me))
    try await server.delete("todos", "a")

    let seen = commits.withLock { $0 }
    #expect(seen.map(\.tables) == [["notes", "todos"], [], ["todos"]], "a replay and an unchanged row ring nobody")
    #expect(seen.map(\.seqs) == [1...3, nil, 4...4])
    #expect(seen.map(\.committedAt) == seen.map(\.committedAt).sorted())
  }

  @Test func aBucketMoveIsOneCommit() async throws {
    let server = SyncServer(configuration: configuration)
    try await server.upsert("todos", "a", ["owner_id": "u"])
    let commits = Locked<[SyncCommit]>([])
    let id = await server.onCommit { commit in commits.withLock { $0.append(commit) } }
    try await server.upsert("todos", "a", ["owner_id": "v"])
    await server.removeCommitHandler(id)
    try await server.upsert("todos", "b", ["owner_id": "v"])
    #expect(commits.withLock { $0.map(\.tables) } == [["todos"]])
    #expect(commits.withLock { $0.map(\.seqs) } == [2...3])
  }

  @Test func whatNoClientCanSeeRingsNobody() async throws {
    let server = SyncServer(
      configuration: SyncServerConfiguration(tables: ["todos": SyncTable(bucketColumn: "owner_id", conflictMode: .hlc)])
    )
    let row: [String: JSONValue] = ["owner_id": "u"]
    try await server.upsert("todos", "a", row, hlc: "2026-01-01T00:00:01.000Z|0|n")
    try await server.upsert("todos", "b", row)
    try await server.delete("todos", "b")
    let commits = Locked<[SyncCommit]>([])
    await server.onCommit { commit in commits.withLock { $0.append(commit) } }
    try await server.upsert("todos", "a", row, hlc: "2026-01-01T00:00:02.000Z|0|n")
    try await server.reap()
    #expect(commits.withLock { $0.map(\.tables) } == [[], []], "a newer clock, a reaped tombstone")
    #expect(commits.withLock { $0.map(\.seqs) } == [nil, nil])
  }

  @Test func writesOfOneTransactionStandTogether() async {
    let server = SyncServer(configuration: configuration)
    let commits = Locked(0)
    await server.onCommit { _ in commits.withLock { $0 += 1 } }
    await #expect(throws: RPCError.self) {
      try await server.apply([
        .upsert(table: "todos", pk: "a", columns: [:]), .upsert(table: "ghosts", pk: "a", columns: [:]),
      ])
    }
    #expect(await server.dump() == "seq 0, reaped to 0\n")
    #expect(commits.withLock { $0 } == 0)
  }

  @Test func whatTheJournalRefusesDidNotHappen() async throws {
    struct DiskFull: Error {}
    let refusing = Locked(true)
    let reported = Locked(0)
    let server = SyncServer(
      state: SyncServerState(configuration: configuration),
      journal: { _ in if refusing.withLock({ $0 }) { throw DiskFull() } })
    await server.onCommit { _ in reported.withLock { $0 += 1 } }
    let answer = await server.push(push([F.insert(1, "a")]), caller: .user(F.me))
    #expect(answer.status == 503)
    #expect(await server.dump() == "seq 0, reaped to 0\n")
    #expect(reported.withLock { $0 } == 0)
    refusing.withLock { $0 = false }
    #expect(await server.push(push([F.insert(1, "a")]), caller: .user(F.me)).status == 200)
    #expect(await server.horizon == 1)
  }

  @Test func theJournalOfAllCommitsIsTheState() async throws {
    let journal = Locked<[StateChange]>([])
    let server = SyncServer(
      state: SyncServerState(configuration: configuration),
      journal: { commit in journal.withLock { $0 += commit.changes } })
    for n in 1...5 { try await server.upsert("todos", "k\(n)", ["owner_id": .string(F.me), "n": .int(n)]) }
    _ = await server.pull(pull, caller: .user(F.me))
    try await server.delete("todos", "k2")
    _ = await server.push(push([F.update(1, "k1", ["n": 9]), F.update(2, "k2", ["n": 9])]), caller: .user(F.me))
    try await server.reap()
    var replayed = SyncServerState(configuration: configuration)
    for change in journal.withLock({ $0 }) {
      let again = try #require(StateChange(JSONValue(parsing: JSONWriter.text(change.json))))
      replayed.replay([again])
    }
    #expect(replayed.dump() == (await server.dump()))
  }

  @Test func keepsTheTimeOfEverySeq() async throws {
    let server = SyncServer(configuration: configuration)
    for n in 1...4 { try await server.upsert("todos", "k\(n)", ["owner_id": "u"]) }
    #expect(await server.commitTimes(after: 2).map(\.seq) == [3, 4])
    #expect(await server.commitTimes(after: 9).isEmpty)
  }

  @Test func deletionsAreStampedByTheInjectedClock() async throws {
    let server = SyncServer(configuration: configuration, wallMilliseconds: { 1_767_225_609_000 })
    try await server.upsert("todos", "a", ["owner_id": .string(F.me)])
    _ = await server.pull(pull, caller: .user(F.me))
    try await server.delete("todos", "a")
    let page = await server.pull(pull, caller: .user(F.me))
    #expect(page.body["tombstones"]?[0]?["deleted_at"] == "2026-01-01T00:00:09.000Z")
  }

  @Test func aSnapshotCanBePutBack() async throws {
    let server = SyncServer(configuration: configuration)
    try await server.upsert("todos", "a", ["owner_id": "u"])
    let (snapshot, dump) = (await server.snapshot(), await server.dump())
    try await server.delete("todos", "a")
    await server.restore(snapshot)
    #expect(await server.dump() == dump)
  }
}
