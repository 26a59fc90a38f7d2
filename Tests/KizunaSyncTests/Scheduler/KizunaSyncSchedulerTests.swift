import Foundation
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// The loop as an app sees it, on a clock of the test's own.
@Suite struct KizunaSyncSchedulerTests {
  let clock = VirtualClock()
  let body = RunBody()
  let path = ScriptedPath(initial: true)
  let foreground = ScriptedForeground()
  let errors = Locked<[String]>([])

  func scheduler(
    interval: TimeInterval = 15, monitorPath: Bool = false, pathMonitor: (any KizunaSyncPathMonitor)? = nil,
    realtime: (any KizunaSyncRealtimeWakeup)? = nil, tables: [String] = [],
    refresh: @escaping @Sendable () async -> Bool = { true }, jitter: Double = 0,
    needsReset: (@Sendable () async -> Bool)? = nil
  ) -> KizunaSyncScheduler {
    KizunaSyncScheduler(
      clock: clock, client: KizunaSyncClient(), pollInterval: interval, monitorPath: monitorPath,
      pathMonitor: pathMonitor ?? path, foregroundSource: foreground, realtime: realtime, realtimeTables: tables,
      refreshSession: refresh, sync: { [body] in try await body.run() },
      onError: { [errors] error in
        // The client of these tests is never opened, so the local-write subscription is refused once.
        if (error as? KizunaSyncError)?.code != "ENGINE_UNAVAILABLE" { errors.withLock { $0.append("\(error)") } }
      }, jitterSource: { jitter },
      needsReset: needsReset)
  }

  /// Waits until no attempt is in flight, and what it caused has been told.
  func rest(_ scheduler: KizunaSyncScheduler) async {
    await clock.settle(until: { scheduler.health().attemptStartedAt == nil })
    await clock.settle()
  }

  /// Lets time pass from tick to tick, each with the run it causes.
  func pass(_ seconds: Double, _ scheduler: KizunaSyncScheduler) async {
    let end = clock.now + .seconds(seconds)
    await rest(scheduler)
    while let next = clock.pendingDeadlines.first, next <= end {
      await clock.advance(to: next)
      await rest(scheduler)
    }
    await clock.advance(to: end)
  }

  @Test func startRunsAtOnceAndThenPolls() async {
    let scheduler = scheduler()
    scheduler.start()
    scheduler.start()
    await rest(scheduler)
    #expect(body.calls == 1)
    await pass(7.4, scheduler)
    #expect(body.calls == 1)
    await pass(0.2, scheduler)
    #expect(body.calls == 2)
    await pass(75, scheduler)
    #expect(body.calls == 12)
    scheduler.stop()
  }

  @Test func theDelayFollowsTheJitter() async {
    let scheduler = scheduler(jitter: 0.5)
    scheduler.start()
    await pass(11.2, scheduler)
    #expect(body.calls == 1)
    await pass(0.1, scheduler)
    #expect(body.calls == 2)
    scheduler.stop()
  }

  @Test func whenStopReturnsNothingIsArmed() async {
    let scheduler = scheduler()
    scheduler.start()
    await rest(scheduler)
    #expect(scheduler.health().nextAttemptAt != nil)
    scheduler.stop()
    #expect(scheduler.health().nextAttemptAt == nil)
    #expect(clock.pendingDeadlines.isEmpty)
    await pass(600, scheduler)
    #expect(body.calls == 1)
    scheduler.wake()
    await pass(600, scheduler)
    #expect(body.calls == 2)
    #expect(foreground.stops.withLock { $0 } == 1)
  }

  @Test func stopDoesNotCancelTheRunInFlight() async {
    let scheduler = scheduler()
    body.hold()
    scheduler.start()
    await clock.settle(until: { body.calls == 1 })
    scheduler.stop()
    #expect(scheduler.health().phase == .syncing)
    body.release()
    await rest(scheduler)
    #expect(scheduler.health().lastSuccessAt != nil)
    #expect(body.calls == 1)
  }

  @Test func aBurstOfRingsCostsOneTrailingRun() async {
    let bell = ScriptedBell()
    let scheduler = scheduler(interval: 0, realtime: bell, tables: ["notes", "todos"])
    scheduler.start()
    await rest(scheduler)
    #expect(bell.topics.withLock { $0 } == [["kizunasync:notes", "kizunasync:todos"]])
    body.hold()
    for _ in 0..<50 { bell.ring() }
    #expect(await clock.settle(until: { body.calls == 2 }))
    body.release()
    await rest(scheduler)
    #expect(body.calls == 3)
    scheduler.stop()
    #expect(bell.subscription.cancels.withLock { $0 } == 1)
    // A ring of a cancelled subscription is nobody's business.
    bell.ring()
    await rest(scheduler)
    #expect(body.calls == 3)
  }

  @Test func withoutTablesNobodySubscribes() {
    let bell = ScriptedBell()
    let scheduler = scheduler(realtime: bell)
    scheduler.start()
    #expect(bell.topics.withLock { $0 }.isEmpty)
    scheduler.stop()
  }

  @Test func aSubscriptionThatComesAfterStopIsCancelledAtOnce() {
    let holder = Locked<KizunaSyncScheduler?>(nil)
    let bell = ScriptedBell { holder.withLock { $0 }?.stop() }
    let scheduler = scheduler(realtime: bell, tables: ["notes"])
    holder.withLock { $0 = scheduler }
    scheduler.start()
    #expect(bell.subscription.cancels.withLock { $0 } == 1)
    holder.withLock { $0 = nil }
  }

  @Test func anUnsatisfiedPathHoldsEverythingAndItsReturnRunsAtOnce() async {
    let path = ScriptedPath()
    let scheduler = scheduler(monitorPath: true, pathMonitor: path)
    scheduler.start()
    await rest(scheduler)
    #expect(scheduler.health().phase == .offline)
    scheduler.wake()
    scheduler.notifyForeground()
    scheduler.notifyOnline()
    await pass(100, scheduler)
    #expect(body.calls == 0)
    path.set(true)
    await rest(scheduler)
    #expect(body.calls == 1)
    path.set(false)
    foreground.come()
    await rest(scheduler)
    #expect(body.calls == 1)
    scheduler.stop()
    #expect(path.cancels.withLock { $0 } == 1)
    #expect(scheduler.health().phase == .idle)
    path.set(false)
    #expect(scheduler.health().phase == .idle)
  }

  @Test func turningTheMonitorOffOpensTheGate() async {
    let path = ScriptedPath(initial: false)
    let scheduler = scheduler(monitorPath: true, pathMonitor: path)
    scheduler.start()
    await rest(scheduler)
    #expect(body.calls == 0)
    scheduler.monitorPath = false
    await rest(scheduler)
    #expect(path.cancels.withLock { $0 } == 1)
    #expect(body.calls == 1)
    path.set(false)
    #expect(scheduler.health().phase == .idle)
    scheduler.monitorPath = true
    #expect(path.starts.withLock { $0 } == 2)
    #expect(scheduler.health().phase == .offline)
    scheduler.stop()
  }

  @Test func comingToTheForegroundRuns() async {
    let scheduler = scheduler(interval: 0)
    scheduler.start()
    await rest(scheduler)
    foreground.come()
    await rest(scheduler)
    #expect(body.calls == 2)
    scheduler.stop()
  }

  @Test func withoutASessionARunIsSkipped() async {
    let signedIn = Locked(false)
    let scheduler = scheduler(interval: 0, refresh: { signedIn.withLock { $0 } }, needsReset: { true })
    scheduler.start()
    await rest(scheduler)
    #expect(body.calls == 0)
    #expect(errors.withLock { $0 }.isEmpty)
    #expect(scheduler.health().consecutiveFailures == 0)
    #expect(scheduler.health().needsReset)
    signedIn.withLock { $0 = true }
    scheduler.wake()
    await rest(scheduler)
    #expect(body.calls == 1)
    scheduler.stop()
  }

  @Test func failuresGrowTheDelayAndASuccessEndsIt() async throws {
    let scheduler = scheduler(interval: 4, jitter: 0)
    body.failure = KizunaSyncError(.remote, "no answer")
    scheduler.start()
    await rest(scheduler)
    #expect(scheduler.health().phase == .backoff)
    // From 4: after one failure 8, then 16, then 30, halved by the jitter of 0.
    for delay in [4.0, 8, 15, 15] {
      let next = try #require(scheduler.health().nextAttemptAt)
      #expect(abs(next.timeIntervalSince1970 - Double(clock.wallMilliseconds) / 1000 - delay) < 0.01)
      await pass(delay, scheduler)
    }
    let health = scheduler.health()
    #expect(health.consecutiveFailures == 5)
    #expect(health.lastError?.code == "REMOTE")
    #expect(health.lastError?.message == "no answer")
    #expect(errors.withLock { $0 } == Array(repeating: "REMOTE: no answer", count: 5))
    body.failure = nil
    await pass(15, scheduler)
    #expect(scheduler.health().phase == .idle)
    #expect(scheduler.health().consecutiveFailures == 0)
    #expect(scheduler.health().lastError == nil)
    scheduler.stop()
  }

  @Test func aCancelledRunIsNeitherSuccessNorFailure() async {
    let scheduler = scheduler(interval: 0)
    body.failure = CancellationError()
    scheduler.start()
    await rest(scheduler)
    #expect(scheduler.health().consecutiveFailures == 0)
    #expect(scheduler.health().lastSuccessAt == nil)
    #expect(errors.withLock { $0 }.isEmpty)
    scheduler.stop()
  }

  @Test func anAttemptThatHangsIsReportedStalled() async {
    let scheduler = scheduler(interval: 10)
    body.hold()
    scheduler.start()
    await clock.settle(until: { body.calls == 1 })
    await clock.advance(by: .seconds(5))
    #expect(scheduler.health().phase == .syncing)
    await clock.advance(by: .seconds(5))
    #expect(scheduler.health().phase == .stalled)
    #expect(scheduler.health().consecutiveFailures == 1)
    body.release()
    await rest(scheduler)
    #expect(body.calls == 2)
    #expect(scheduler.health().phase == .idle)
    scheduler.stop()
  }

  @Test func aTimerThatFiresMuchTooLateMeansTheProcessWasStopped() async {
    let reasons = Locked<[KizunaSyncWakeReason]>([])
    let scheduler = KizunaSyncScheduler(
      clock: clock, client: KizunaSyncClient(), monitorPath: false, foregroundSource: SilentResumeDetector(),
      refreshSession: { true }, sync: { [body] in try await body.run() }, jitterSource: { 0 })
    _ = scheduler.onRun { report in reasons.withLock { $0.append(report.reason) } }
    scheduler.start()
    await rest(scheduler)
    await clock.suspendHost(for: .seconds(30))
    #expect(await clock.settle(until: { reasons.withLock { $0 } == [.start, .poll] }))
    await clock.suspendHost(for: .seconds(38))
    #expect(await clock.settle(until: { reasons.withLock { $0 } == [.start, .poll, .foreground] }))
    scheduler.stop()
  }

  @Test func aRefusedLocalWriteSubscriptionIsReportedAndTheRestGoesOn() async {
    let codes = Locked<[String]>([])
    let scheduler = KizunaSyncScheduler(
      clock: clock, client: KizunaSyncClient(), monitorPath: false, observeForeground: false,
      refreshSession: { true }, sync: { [body] in try await body.run() },
      onError: { error in codes.withLock { $0.append((error as? KizunaSyncError)?.code ?? "") } })
    scheduler.start()
    await rest(scheduler)
    #expect(codes.withLock { $0 } == ["ENGINE_UNAVAILABLE"])
    #expect(body.calls == 1)
    scheduler.stop()
  }

  @Test func aLocalWriteWakesUntilTheEngineIsReplaced() async throws {
    let open = try await OpenClient(signedIn: false)
    let reasons = Locked<[KizunaSyncWakeReason]>([])
    let scheduler = KizunaSyncScheduler(
      clock: clock, client: open.client, pollInterval: 0, monitorPath: false, observeForeground: false,
      refreshSession: { true }, sync: { [body] in try await body.run() })
    _ = scheduler.onRun { report in reasons.withLock { $0.append(report.reason) } }
    scheduler.start()
    await rest(scheduler)
    try await open.client.from("notes").insert(["body": "x"])
    #expect(await clock.settle(until: { reasons.withLock { $0 == [.start, .localWrite] } }))
    // Another engine: the subscription is gone until the scheduler starts again.
    try await open.client.create(.init(tables: ["facts": .init()]))
    try await open.client.from("facts").insert(["v": 1])
    await clock.settle()
    #expect(reasons.withLock { $0.count } == 2)
    scheduler.stop()
    scheduler.start()
    #expect(await clock.settle(until: { reasons.withLock { $0 == [.start, .localWrite, .start] } }))
    try await open.client.from("facts").insert(["v": 2])
    #expect(await clock.settle(until: { reasons.withLock { $0.last == .localWrite } }))
    scheduler.stop()
    await open.client.dispose()
  }

  @Test func healthIsToldAtOnceAndAtEveryChangeInOrder() async {
    let phases = Locked<[KizunaSyncSyncPhase]>([])
    let scheduler = scheduler(interval: 0)
    let end = scheduler.onHealth { health in
      phases.withLock { if $0.last != health.phase { $0.append(health.phase) } }
    }
    #expect(phases.withLock { $0 } == [.idle])
    scheduler.start()
    await rest(scheduler)
    #expect(phases.withLock { $0 } == [.idle, .syncing, .idle])
    body.failure = KizunaSyncError(.remote, "no")
    scheduler.wake()
    await rest(scheduler)
    #expect(phases.withLock { $0 } == [.idle, .syncing, .idle, .syncing, .backoff])
    end()
    scheduler.wake()
    await rest(scheduler)
    #expect(phases.withLock { $0.count } == 5)
    scheduler.stop()
  }

  @Test func aHealthHandlerMayCallTheScheduler() async {
    let scheduler = scheduler(interval: 0)
    let once = Locked(true)
    _ = scheduler.onHealth { [weak scheduler] health in
      guard health.phase == .idle, health.lastSuccessAt != nil else { return }
      if once.withLock({ once in
        defer { once = false }; return once
      }) {
        scheduler?.wake()
      }
    }
    scheduler.start()
    await rest(scheduler)
    #expect(body.calls == 2)
    scheduler.stop()
  }

  @Test func settingsMayChangeWhileItRuns() async {
    let scheduler = scheduler(interval: 100)
    scheduler.start()
    await rest(scheduler)
    scheduler.pollInterval = 2
    await pass(1, scheduler)
    #expect(body.calls == 2)
    let other = RunBody()
    scheduler.sync = { try await other.run() }
    await pass(1, scheduler)
    #expect(other.calls == 1)
    scheduler.refreshSession = { false }
    await pass(5, scheduler)
    #expect(other.calls == 1)
    #expect(scheduler.pollInterval == 2)
    scheduler.stop()
  }

  @Test func aRunReportsWhenItWasWoken() async {
    let reports = Locked<[KizunaSyncRunReport]>([])
    let scheduler = scheduler(interval: 0)
    _ = scheduler.onRun { report in reports.withLock { $0.append(report) } }
    let before = SystemClock.monotonic
    scheduler.wake(reason: .doorbell)
    #expect(await clock.settle(until: { reports.withLock { $0.count == 1 } }))
    let report = reports.withLock { $0[0] }
    #expect(report.reason == .doorbell)
    #expect(report.outcome == .success)
    #expect(before <= report.wokenAt)
    #expect(report.wokenAt <= report.startedAt)
    #expect(report.startedAt <= report.syncStartedAt ?? 0)
    #expect(report.syncStartedAt ?? .max <= report.finishedAt)
  }

  @Test func aSchedulerThatIsLetGoEndsItsSources() {
    weak var gone: KizunaSyncScheduler?
    do {
      let scheduler = scheduler(monitorPath: true, pathMonitor: ScriptedPath(initial: false))
      scheduler.start()
      gone = scheduler
    }
    #expect(gone == nil)
    #expect(foreground.stops.withLock { $0 } == 1)
    #expect(clock.pendingDeadlines.isEmpty)
  }
}
