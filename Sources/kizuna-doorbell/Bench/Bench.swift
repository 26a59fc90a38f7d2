import HTTPClient
import HostKit
import KizunaDoorbell
import KizunaSync

/// One run of the bench: a gateway, somebody who writes, and the floor, turn by turn.
struct Bench {
  /// Whose rings are measured.
  enum Server {
    /// Of a server that this process started, with its times of commits.
    case embedded
    /// The same before a database, where an SQL session writes.
    case postgres(BenchSQL)
    case configured
  }

  private let configuration: GatewayConfiguration
  private let server: Server
  private let folder: String
  private let log: HostLog

  /// Rings before the measured ones: connections open, statements are prepared, caches fill.
  private static let warmUp = 10
  private static let patience: UInt64 = .seconds(10)
  /// Rows of the warm-up in a row that may come without a ring.
  private static let tolerated = 3

  init(_ configuration: GatewayConfiguration, _ server: Server, folder: String, log: HostLog) {
    self.configuration = configuration
    self.server = server
    self.folder = folder
    self.log = log
  }

  func run(rings: Int) async throws -> BenchReport {
    let (traces, continuation) = AsyncStream.makeStream(of: RingTrace?.self)
    var parts = GatewayParts.live()
    let capturing = CapturingHTTP(parts.http)
    parts.http = capturing
    let gateway = Gateway(configuration, parts: parts, log: log) { continuation.yield($0) }
    try await gateway.start()
    let floor = BenchFloor(
      database: folder + "/floor.db", webSocketURL: try ServerURL(configuration.webSocketURL, for: .webSocket),
      key: configuration.publishableKey.value)
    do {
      try await ready(gateway)
      let token = try await gateway.session.accessToken().value
      let source =
        switch server {
        case .embedded: BenchSource.embedded(configuration, token: token)
        case .postgres(let session): BenchSource.postgres(configuration, token: token, session)
        case .configured: try await BenchSource.configured(configuration, client: gateway.client, token: token)
        }
      let report: BenchReport
      do {
        report = try await measure(source, floor, traces, continuation, capturing, rings: rings)
      } catch {
        try? await source.restore()
        throw error
      }
      try await source.restore()
      await source.close()
      await floor.close()
      await gateway.stop()
      return report
    } catch {
      await floor.close()
      await gateway.stop()
      throw error
    }
  }

  private func measure(
    _ source: BenchSource, _ floor: BenchFloor, _ traces: AsyncStream<RingTrace?>,
    _ continuation: AsyncStream<RingTrace?>.Continuation, _ capturing: CapturingHTTP, rings: Int
  ) async throws -> BenchReport {
    var report = BenchReport(firstStage: firstStage)
    var iterator = traces.makeAsyncIterator()
    var missed = 0
    for number in 0..<(Self.warmUp + rings) {
      let sentAt = try await source.ring()
      let timer = SystemClock.shared.schedule(after: Self.patience) { continuation.yield(nil) }
      let trace = await iterator.next() ?? nil
      timer.cancel()
      let committedAt = tellsCommits ? try await source.committedAt() : sentAt
      guard let pull = capturing.lastPull else { continue }
      let sample = try await floor.sample(pull: pull)
      guard number >= Self.warmUp else {
        // A run that was under way for another reason may bring a row before its ring: no trace, and no fault.
        missed = trace == nil ? missed + 1 : 0
        if missed == Self.tolerated {
          throw CommandFailure(
            .failure, "\(missed) rows were written one after the other, but no ring brought any within 10 s")
        }
        continue
      }
      guard let trace, let committedAt, let stages = trace.durations(serverCommittedAt: committedAt) else {
        report.lost += 1
        continue
      }
      report.add(stages, sample)
      if case .postgres = server { report.trigger.append(committedAt - min(sentAt, committedAt)) }
    }
    return report
  }

  private var firstStage: String {
    switch server {
    case .embedded: RingStage.broadcast.title
    case .postgres: "notification received → frame received"
    case .configured: "write sent → frame received"
    }
  }

  private var tellsCommits: Bool {
    if case .configured = server { false } else { true }
  }

  private enum Event: Sendable {
    case joined, synced
    case failed(any Error)
  }

  /// Waits until the topics are joined and the first pull is done.
  /// - Throws: `GatewayError` or `CommandFailure` when that will not happen, or takes too long.
  private func ready(_ gateway: Gateway) async throws {
    let (events, continuation) = AsyncStream.makeStream(of: Event.self)
    let timer = SystemClock.shared.schedule(after: .seconds(30)) {
      continuation.yield(
        .failed(CommandFailure(.unreachable, "the topics were not joined and the first sync not done within 30 s")))
    }
    defer { timer.cancel() }
    gateway.onEnd { continuation.yield(.failed($0)) }
    let states = Task {
      for await status in gateway.connection.statusUpdates {
        if status.isReady { continuation.yield(.joined) }
        if let failure = ListenVerdict.failure(status) { continuation.yield(.failed(failure)) }
      }
    }
    defer { states.cancel() }
    let end = gateway.scheduler.onHealth { health in
      if health.lastSuccessAt != nil, health.attemptStartedAt == nil { continuation.yield(.synced) }
    }
    defer { end() }
    var isJoined = false
    var isSynced = false
    for await event in events {
      switch event {
      case .joined: isJoined = true
      case .synced: isSynced = true
      case .failed(let error): throw error
      }
      if isJoined, isSynced { return }
    }
  }
}

extension BenchReport {
  fileprivate mutating func add(_ durations: [RingStage: UInt64], _ floor: BenchFloor.Sample) {
    for (stage, duration) in durations { stages[stage, default: []].append(duration) }
    totals.append(durations.values.reduce(0, +))
    webSocket.append(floor.webSocket)
    request.append(floor.request)
    transaction.append(floor.transaction)
  }
}
