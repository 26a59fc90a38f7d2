import Glibc
import HostKit
import KizunaSyncTestSupport
import LocalStack
import Testing

/// F35: a gateway that is killed at any moment leaves a file from which a plain start goes on, while two other programs
/// never stop writing to it. `KIZUNA_KILLS` says how often; the long run makes it 200.
@Suite struct KilledGatewayTests {
  static let kills = ProcessEnvironment.variables["KIZUNA_KILLS"].flatMap { Int($0) } ?? 20
  static let seed = ProcessEnvironment.variables["KIZUNA_SEED"].flatMap { UInt64($0) } ?? 1
  private static let shared = 10
  private static let bulk = 1200

  /// When a process is killed.
  private enum Moment: String, CaseIterable {
    /// While it starts.
    case starting
    /// At any time after it is ready.
    case anyTime
    /// When writes of other programs wait for the harvest.
    case harvest
    /// When writes were sent and not acknowledged.
    case push
    /// When pages wait for the last one.
    case staging
    /// While a transfer is being applied, or right before or after.
    case apply

    /// What shows that the time has come.
    var sign: String? {
      switch self {
      case .starting, .anyTime: nil
      case .harvest: TwoHosts.Host.unharvested
      case .push: "SELECT count(*) FROM _kizunasync_outbox WHERE state = 1"
      case .staging, .apply: "SELECT count(*) FROM _kizunasync_pages"
      }
    }
  }

  /// What the killed processes left undone, by the files' own word.
  private struct Found: CustomStringConvertible {
    var unharvested = 0
    var sent = 0
    var staged = 0

    var description: String {
      "\(unharvested) with writes to harvest, \(sent) with writes sent, \(staged) with pages staged"
    }

    mutating func look(_ host: TwoHosts.Host) throws {
      func holds(_ moment: Moment) throws -> Bool { try host.number(moment.sign ?? "SELECT 0") > 0 }
      // The writers go on, so only what was there right after the kill tells.
      if try holds(.push) { sent += 1 }
      if try holds(.staging) { staged += 1 }
      if try holds(.harvest) { unharvested += 1 }
    }
  }

  @Test(.enabled(if: access(ForeignWriters.shell, X_OK) == 0), .timeLimit(.minutes(60)))
  func nothingIsLostOrDoubled() async throws {
    try await TwoHosts.with { hosts in
      let other = try hosts.b.start()
      do {
        _ = try await ready(other)
        try await kill(hosts)
        await other.stop()
      } catch {
        await other.stop()
        throw error
      }
    }
  }

  private func ready(_ process: ChildProcess) async throws -> String {
    try await process.line(of: .errors, within: .seconds(150)) { $0.contains("\"event\":\"gateway.ready\"") }
  }

  private func kill(_ hosts: TwoHosts) async throws {
    let (a, b) = (hosts.a, hosts.b)
    let first = try a.start()
    _ = try await ready(first)
    let names = ["one", "two"]
    for title in (0..<Self.shared).map({ "shared-\($0)" }) + names.map({ "\($0)-count" }) {
      try PlainSQL.run(a.database, "INSERT INTO todos(title, n) VALUES ('\(title)', 0)")
    }
    try await eventually("the first rows") { try b.rows().count == Self.shared + names.count }
    await first.stop()

    let stop = hosts.scratch.path + "/stop"
    let writers = try names.map {
      try ForeignWriters.endless($0, database: a.database, shared: Self.shared, stop: stop, hosts.scratch)
    }
    let beside = SteadyWriter(
      [b.database], titles: (0..<Self.shared).map { "shared-\($0)" }, column: "n", seed: Self.seed)
    var random = SeededRandom(Self.seed)
    var found = Found()
    for round in 1...Self.kills {
      let moment = Moment.allCases[round % Moment.allCases.count]
      let process = try a.start()
      try await wait(for: moment, process, hosts, round, &random)
      process.send(signal: SIGKILL)
      #expect(await process.ending().code == 128 + SIGKILL, "round \(round): it was alive")
      try found.look(a)
      #expect(try PlainSQL.run(a.database, "PRAGMA integrity_check") == ["ok"], "round \(round), \(moment)")
      // The others do not need it.
      let counts = try counts(a, names)
      try await eventually("round \(round): both go on without it") {
        zip(try self.counts(a, names), counts).allSatisfy { $0 > $1 }
      }
    }
    #expect(await beside.stop() == nil)
    try hosts.scratch.write("stop", "")
    var transactions: [Int] = []
    for writer in writers {
      let ending = await writer.ending()
      #expect(ending.code == 0, "\(ending.errors)")
      transactions.append(ending.output.count)
    }

    let last = try a.start()
    try await settle(hosts)
    try await compare(hosts, zip(names, transactions).map { ($0, $1) })
    await last.stop()
    print("\(Self.kills) kills, \(transactions) transactions of the writers; \(found)")
    if Self.kills >= 100 { #expect(found.sent > 0 && found.staged > 0 && found.unharvested > 0) }
  }

  private func counts(_ host: TwoHosts.Host, _ names: [String]) throws -> [Int] {
    try names.map { try host.number("SELECT n FROM todos WHERE title = '\($0)-count'") }
  }

  private func wait(
    for moment: Moment, _ process: ChildProcess, _ hosts: TwoHosts, _ round: Int, _ random: inout SeededRandom
  ) async throws {
    let clock = SystemClock.shared
    if moment == .starting {
      return try await clock.sleep(nanoseconds: .milliseconds(Double(random.below(300))))
    }
    _ = try await ready(process)
    #expect(try PlainSQL.run(hosts.a.database, "PRAGMA integrity_check") == ["ok"], "round \(round), started again")
    if moment == .staging || moment == .apply { try await hosts.serveBulk(Self.bulk, round) }
    guard let sign = moment.sign else {
      return try await clock.sleep(nanoseconds: .milliseconds(Double(random.below(400))))
    }
    // A sign that is missed is no failure: the moment is as good as any.
    let deadline = clock.now + .seconds(3)
    while try hosts.a.number(sign) <= 0, clock.now < deadline { await Task.yield() }
    if moment == .apply { try await clock.sleep(nanoseconds: .milliseconds(Double(random.below(250)))) }
  }

  private func settle(_ hosts: TwoHosts) async throws {
    try await eventually("everything delivered and the same on both hosts") {
      try hosts.a.isDelivered && hosts.b.isDelivered && hosts.a.rows() == hosts.b.rows()
        && hosts.a.rows("bulk") == hosts.b.rows("bulk")
    }
  }

  private func compare(_ hosts: TwoHosts, _ writers: [(name: String, transactions: Int)]) async throws {
    let a = hosts.a
    for table in ["todos", "bulk"] {
      let rows = try a.rows(table)
      #expect(await hosts.served(table, like: rows) == rows)
      #expect(await hosts.stack.server.rowCount(table) == rows.count)
    }
    // Each row has a key of its own, so a write that arrived twice or never shows in the titles.
    let titles = try PlainSQL.run(a.database, "SELECT title FROM todos WHERE title NOT LIKE 'shared-%'").sorted()
    let wanted = writers.flatMap { ForeignWriters.titles($0.name, transactions: $0.transactions) }.sorted()
    #expect(Set(titles).symmetricDifference(wanted) == [])
    #expect(titles.count == wanted.count)
    for writer in writers {
      #expect(try a.number("SELECT n FROM todos WHERE title = '\(writer.name)-count'") == writer.transactions)
    }
    #expect(try a.number("SELECT count(*) FROM _kizunasync_rejections") == 0)
    for host in [hosts.a, hosts.b] {
      #expect(try PlainSQL.run(host.database, "PRAGMA integrity_check") == ["ok"])
    }
  }
}
