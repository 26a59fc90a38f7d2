import HostKit
import KizunaSyncTestSupport
import LocalStack

/// One run: hosts, server, writers, and the faults one after another.
struct Soak: Sendable {
  private let server: SoakServer
  private let hosts: [SoakHost]
  private let seed: UInt64
  private let isQuick: Bool

  /// Seconds after which a host that has not recovered counts as lost. A server's limit is answered with a minute's pause,
  /// a request that hangs with half a minute's.
  private static let patience = 180.0

  static func start(folder: String, seed: UInt64, isQuick: Bool) async throws -> Soak {
    let server = try await SoakServer.start(directory: folder + "/server")
    var hosts: [SoakHost] = []
    for name in ["a", "b"] {
      hosts.append(try await SoakHost.start(name, server, folder: folder, isQuick: isQuick))
    }
    return Soak(server: server, hosts: hosts, seed: seed, isQuick: isQuick)
  }

  private init(server: SoakServer, hosts: [SoakHost], seed: UInt64, isQuick: Bool) {
    self.server = server
    self.hosts = hosts
    self.seed = seed
    self.isQuick = isQuick
  }

  func run(seconds: Int) async -> SoakReport {
    var report = SoakReport(seed: seed)
    report.hosts = hosts.map { SoakReport.Host(name: $0.name) }
    let start = SystemClock.monotonic
    do {
      try await runFaults(until: start + .seconds(Double(seconds)), &report)
    } catch {
      report.problems.append("\(error)")
    }
    report.seconds = Int((SystemClock.monotonic - start).inSeconds)
    report.repeatedJoins = await server.repeatedJoins
    if report.repeatedJoins > 0 { report.problems.append("a topic was joined twice on one socket") }
    report.convergence.sort()
    report.rejoining.sort()
    await finish(&report)
    return report
  }

  private func runFaults(until end: UInt64, _ report: inout SoakReport) async throws {
    var random = SeededRandom(seed)
    let writers = SoakWriters(hosts, server, seed: seed)
    var round = 0
    do {
      while SystemClock.monotonic < end {
        round += 1
        try await runFault(round, &random, &report)
        // What the first faults allocate once is no leak.
        if round == 3 { try await measure(&report, atStart: true) }
        try await pause(0...(isQuick ? 0.5 : 8), &random)
      }
    } catch {
      report.writes = await writers.stop().writes
      throw error
    }
    let written = await writers.stop()
    report.writes = written.writes
    if let failure = written.failure { report.problems.append("a writer failed: \(failure)") }
    try await waitFor("the same rows everywhere") {
      let rows = try await hosts[0].rows()
      for host in hosts {
        guard try await host.isDelivered, try await host.rows() == rows else { return false }
      }
      return await server.stack.server.rowCount("todos") == rows.count
    }
    try await measure(&report, atStart: false)
    check(&report)
  }

  // MARK: One fault

  private func runFault(_ round: Int, _ random: inout SeededRandom, _ report: inout SoakReport) async throws {
    // The enumeration is not empty.
    let fault = SoakFault.allCases.randomElement(using: &random)!
    let concerned = fault.concernsServer ? [] : hosts.filter { _ in Bool.random(using: &random) }
    let targets = concerned.isEmpty ? [hosts[round % hosts.count]] : concerned
    let bytes = Int.random(in: 0...3_000, using: &random)
    // A limit is answered with a pause of a minute, too long for a short run.
    let status = (isQuick ? [500, 502, 503] : [500, 502, 503, 429]).randomElement(using: &random)!
    report.faults[fault.rawValue, default: 0] += 1
    let names = fault.concernsServer ? "the server" : targets.map(\.name).joined(separator: " and ")
    StandardStreams.printError("\(round): \(fault) on \(names)")

    if fault.concernsServer {
      try await fault.begin(server, status: status)
    } else {
      for host in targets { fault.begin(host.proxy, bytes: bytes) }
    }
    var titles: [String] = []
    for host in hosts {
      titles.append("mark-\(round)-\(host.name)")
      try await host.database.run("INSERT INTO todos(title) VALUES ('mark-\(round)-\(host.name)')")
    }
    if try await server.write("mark-\(round)-there") { titles.append("mark-\(round)-there") }
    try await pause(isQuick ? 0...2 : 0.5...20, &random)
    if fault.concernsServer {
      try await fault.end(server)
    } else {
      for host in targets { fault.end(host.proxy) }
    }
    try await recover(titles, fault, &report)
    try await hosts[round % hosts.count].database.run("DELETE FROM todos WHERE title LIKE 'mark-\(round)-%'")
  }

  private func recover(_ titles: [String], _ fault: SoakFault, _ report: inout SoakReport) async throws {
    let start = SystemClock.monotonic
    try await waitFor("\(titles) everywhere after \(fault)") {
      for host in hosts where try await !host.has(titles) { return false }
      return true
    }
    let took = (SystemClock.monotonic - start).inMilliseconds
    if took > report.convergence.max() ?? 0 { report.slowest = fault.rawValue }
    report.convergence.append(took)
    let count = hosts.count
    try await waitFor("every topic joined after \(fault)") {
      let counts = await server.stack.realtimeCounts
      return counts.openSockets == count && counts.topics["kizunasync:todos"]?.members == count
    }
    report.rejoining.append((SystemClock.monotonic - start).inMilliseconds)
  }

  private func pause(_ seconds: ClosedRange<Double>, _ random: inout SeededRandom) async throws {
    try await SystemClock.shared.sleep(nanoseconds: .seconds(Double.random(in: seconds, using: &random)))
  }

  private func waitFor(_ what: String, _ condition: () async throws -> Bool) async throws {
    let deadline = SystemClock.monotonic + .seconds(Self.patience)
    while try await !condition() {
      guard SystemClock.monotonic < deadline else { throw SoakProblem("not within \(Int(Self.patience)) s: \(what)") }
      // Another process does it, and tells nobody.
      try await SystemClock.shared.sleep(nanoseconds: .milliseconds(20))
    }
  }

  // MARK: Resources and the end

  private func measure(_ report: inout SoakReport, atStart: Bool) async throws {
    for (index, host) in hosts.enumerated() {
      let resources = try await ProcessResources.atRest(host.process.pid)
      if atStart {
        report.hosts[index].descriptorsAtStart = resources.descriptors
        report.hosts[index].residentKiBAtStart = resources.residentBytes >> 10
      } else {
        report.hosts[index].descriptorsAtEnd = resources.descriptors
        report.hosts[index].residentKiBAtEnd = resources.residentBytes >> 10
      }
    }
  }

  private func check(_ report: inout SoakReport) {
    for host in report.hosts where host.descriptorsAtStart > 0 {
      // A connection more or less may be idle at either moment.
      if host.descriptorsAtEnd > host.descriptorsAtStart + 4 {
        report.problems.append("host \(host.name) holds more descriptors at the end")
      }
      if host.residentKiBAtEnd > host.residentKiBAtStart * 12 / 10 + 8_192 {
        report.problems.append("host \(host.name) has grown by more than a fifth and 8 MiB")
      }
    }
  }

  /// Ends the hosts, and counts what they have logged.
  private func finish(_ report: inout SoakReport) async {
    for (index, host) in hosts.enumerated() {
      let ending = await host.process.stop()
      if ending.code != 0 { report.problems.append("host \(host.name) ended with \(ending.code)") }
      report.hosts[index].count(ending.errors)
      await host.proxy.stop()
    }
    do {
      if !server.isAway { try await server.stop() }
    } catch {
      report.problems.append("the server: \(error)")
    }
  }
}
