import HostKit
import Testing

@testable import KizunaSync

/// The rules of the Swift surface §7.1–7.4, one by one.
@Suite struct SchedulerMachineTests {
  typealias Action = SchedulerMachine.Action
  static let interval: UInt64 = .seconds(15)
  let failure = SchedulerMachine.Outcome.failure(code: "REMOTE", message: "no answer")

  func started(interval: UInt64 = interval) -> SchedulerMachine {
    var machine = SchedulerMachine(interval: interval)
    _ = machine.start()
    return machine
  }

  func begun(_ actions: [Action]) -> [SchedulerMachine.Attempt] {
    actions.compactMap { if case .begin(let attempt) = $0 { attempt } else { nil } }
  }

  func armed(_ actions: [Action]) -> [UInt64] {
    actions.compactMap { if case .arm(_, let base) = $0 { base } else { nil } }
  }

  // MARK: Timer

  @Test(
    arguments: [
      (0, .seconds(7.5)), (0.5, .seconds(11.25)), (0.999, .milliseconds(14992.5)), (-1, .seconds(7.5)),
      (2, .seconds(15)), (.nan, .seconds(7.5)),
    ] as [(Double, UInt64)])
  func theDelayLiesInTheUpperHalfOfTheBase(jitter: Double, expected: UInt64) {
    let delay = SchedulerMachine.delay(base: Self.interval, jitter: jitter)
    #expect(max(delay, expected) - min(delay, expected) <= 1)
  }

  @Test(
    arguments: [
      (15, [15, 30, 30, 30]), (1, [1, 2, 4, 8, 16, 30, 30]), (60, [60, 60, 60]), (0.1, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]),
    ] as [(Double, [Double])])
  func theBaseDoublesWithTheStreakUpToThirtySecondsOrTheInterval(interval: Double, bases: [Double]) {
    var machine = SchedulerMachine(interval: .seconds(interval))
    var seen = armed(machine.start())
    while seen.count < bases.count {
      let timer = machine.timer!
      let tick = machine.timerFired(timer, at: 0, stamp: 0)
      #expect(begun(tick).map(\.reason) == [.poll])
      seen += armed(machine.attemptFinished(failure, needsReset: false, at: 0))
    }
    #expect(seen == bases.map { UInt64.seconds($0) })
  }

  @Test func aLongStreakDoesNotOverflow() {
    var machine = started()
    for _ in 0..<200 {
      _ = machine.timerFired(machine.timer!, at: 0, stamp: 0)
      _ = machine.attemptFinished(failure, needsReset: false, at: 0)
    }
    #expect(machine.snapshot.consecutiveFailures == 200)
    #expect(armed(machine.timerFired(machine.timer!, at: 0, stamp: 0)) == [.seconds(30)])
  }

  @Test func withoutAnIntervalThereIsNoTimer() {
    var machine = SchedulerMachine(interval: 0)
    #expect(machine.start() == [.publish])
    #expect(machine.timer == nil)
    #expect(armed(machine.wake(.start, at: 0, stamp: 0)).isEmpty)
    #expect(armed(machine.attemptFinished(failure, needsReset: false, at: 0)).isEmpty)
  }

  @Test func aTickArmsTheNextBeforeItAttempts() {
    var machine = started()
    let actions = machine.timerFired(machine.timer!, at: 0, stamp: 7)
    #expect(
      actions == [
        .arm(timer: 2, base: Self.interval), .begin(.init(number: 1, reason: .poll, wokenAt: 7)), .publish,
      ])
  }

  @Test func anObsoleteTimerDoesNothing() {
    var machine = started()
    let old = machine.timer!
    _ = machine.setInterval(.seconds(5))
    #expect(machine.timerFired(old, at: 0, stamp: 0) == [])
    machine.timerArmed(old, firesAt: 99)
    #expect(machine.snapshot.nextAttemptAt == nil)
  }

  @Test func assigningTheIntervalOrTheSessionRestartsARunningTimerOnly() {
    var machine = SchedulerMachine(interval: Self.interval)
    #expect(machine.setInterval(.seconds(3)) == [])
    #expect(machine.restartTimer() == [])
    #expect(armed(machine.start()) == [.seconds(3)])
    #expect(armed(machine.restartTimer()) == [.seconds(3)])
    #expect(armed(machine.setInterval(.seconds(4))) == [.seconds(4)])
    #expect(machine.setInterval(0) == [.disarm, .publish])
    #expect(machine.timer == nil)
  }

  @Test func theSnapshotTellsWhenTheTimerFires() {
    var machine = started()
    machine.timerArmed(machine.timer!, firesAt: 1234)
    #expect(machine.snapshot.nextAttemptAt == 1234)
    _ = machine.stop()
    #expect(machine.snapshot.nextAttemptAt == nil)
  }

  // MARK: Start and stop

  @Test func startIsIdempotent() {
    var machine = SchedulerMachine(interval: Self.interval)
    #expect(machine.start() == [.arm(timer: 1, base: Self.interval), .publish])
    #expect(machine.start() == [])
  }

  @Test func stopDisarmsOpensTheGateAndLeavesTheAttemptAlone() {
    var machine = started()
    _ = machine.wake(.start, at: 1, stamp: 1)
    _ = machine.wake(.doorbell, at: 2, stamp: 2)
    _ = machine.pathMonitorArmed()
    #expect(machine.stop() == [.disarm, .publish])
    #expect(machine.isGateOpen)
    #expect(machine.snapshot.phase == .syncing)
    // The booked run is forgotten, and the attempt's end arms nothing.
    #expect(machine.attemptFinished(.success, needsReset: false, at: 3) == [.publish])
    #expect(machine.timer == nil)
  }

  @Test func aWakeAfterStopStillRunsOnce() {
    var machine = started()
    _ = machine.stop()
    #expect(begun(machine.wake(.doorbell, at: 0, stamp: 0)).count == 1)
    #expect(machine.attemptFinished(failure, needsReset: false, at: 0) == [.publish])
    #expect(machine.timer == nil)
  }

  // MARK: Gate

  @Test func aShutGateHoldsEveryReasonAndRemembersNone() {
    var machine = started()
    #expect(machine.pathMonitorArmed() == [.publish])
    for reason: KizunaSyncWakeReason in [.poll, .foreground, .path, .doorbell, .localWrite, .start] {
      #expect(machine.wake(reason, at: 0, stamp: 0) == [.publish])
    }
    #expect(machine.snapshot.phase == .offline)
    let opened = machine.pathReported(satisfied: true, at: 5, stamp: 5)
    #expect(begun(opened).map(\.reason) == [.path])
    #expect(machine.attemptFinished(.success, needsReset: false, at: 6) == [.publish])
  }

  @Test func onlyTheTransitionToSatisfiedWakes() {
    var machine = started()
    #expect(machine.pathReported(satisfied: true, at: 0, stamp: 0) == [])
    #expect(machine.pathReported(satisfied: false, at: 0, stamp: 0) == [.publish])
    #expect(machine.pathReported(satisfied: false, at: 0, stamp: 0) == [])
    #expect(begun(machine.pathReported(satisfied: true, at: 0, stamp: 0)).count == 1)
    #expect(machine.pathReported(satisfied: true, at: 0, stamp: 0) == [])
  }

  @Test func aPathThatIsLostDuringAnAttemptHoldsTheTrailingRun() {
    var machine = started()
    _ = machine.wake(.start, at: 0, stamp: 0)
    _ = machine.wake(.doorbell, at: 0, stamp: 0)
    _ = machine.pathReported(satisfied: false, at: 0, stamp: 0)
    #expect(begun(machine.attemptFinished(.success, needsReset: false, at: 0)).isEmpty)
    #expect(machine.snapshot.phase == .offline)
  }

  // MARK: Wakes

  @Test func aBurstDuringARunBecomesOneTrailingRunStampedByItsFirstWake() {
    var machine = started()
    #expect(begun(machine.wake(.doorbell, at: 0, stamp: 10)).map(\.wokenAt) == [10])
    for stamp: UInt64 in 11...50 {
      #expect(machine.wake(.doorbell, at: 0, stamp: stamp) == [.publish])
    }
    let trailing = machine.attemptFinished(.success, needsReset: false, at: 0)
    #expect(begun(trailing).map(\.wokenAt) == [11])
    #expect(armed(trailing) == [Self.interval])
    #expect(begun(machine.attemptFinished(.success, needsReset: false, at: 0)).isEmpty)
  }

  @Test func aWakeOtherThanAPollClearsTheStreakAndRearms() {
    for reason: KizunaSyncWakeReason in [.foreground, .path, .doorbell, .localWrite, .start] {
      var machine = started()
      _ = machine.wake(.start, at: 0, stamp: 0)
      _ = machine.attemptFinished(failure, needsReset: false, at: 42)
      #expect(machine.snapshot.phase == .backoff)
      #expect(machine.snapshot.lastError == .init(code: "REMOTE", message: "no answer", at: 42))
      let actions = machine.wake(reason, at: 0, stamp: 0)
      #expect(armed(actions) == [Self.interval])
      #expect(begun(actions).count == 1)
      #expect(machine.snapshot.consecutiveFailures == 0)
      #expect(machine.snapshot.lastError == nil)
      // Nothing to clear, nothing to arm.
      #expect(armed(machine.wake(reason, at: 0, stamp: 0)).isEmpty)
    }
  }

  @Test func aPollKeepsTheStreak() {
    var machine = started()
    _ = machine.wake(.start, at: 0, stamp: 0)
    _ = machine.attemptFinished(failure, needsReset: false, at: 0)
    let tick = machine.timerFired(machine.timer!, at: 0, stamp: 0)
    #expect(armed(tick) == [.seconds(30)])
    #expect(machine.snapshot.consecutiveFailures == 1)
  }

  @Test func aTrailingRunDoesNotClearTheStreak() {
    var machine = started()
    _ = machine.wake(.start, at: 0, stamp: 0)
    _ = machine.wake(.doorbell, at: 0, stamp: 0)
    let actions = machine.attemptFinished(failure, needsReset: false, at: 0)
    #expect(begun(actions).count == 1)
    #expect(armed(actions) == [.seconds(30)])
    #expect(machine.snapshot.consecutiveFailures == 1)
  }

  // MARK: Finish

  @Test func aSkippedRunIsNeitherSuccessNorFailure() {
    var machine = started()
    _ = machine.wake(.poll, at: 0, stamp: 0)
    _ = machine.attemptFinished(failure, needsReset: false, at: 1)
    _ = machine.wake(.poll, at: 2, stamp: 0)
    #expect(machine.attemptFinished(.skipped, needsReset: true, at: 3) == [.publish])
    let snapshot = machine.snapshot
    #expect(snapshot.consecutiveFailures == 1)
    #expect(snapshot.lastSuccessAt == nil)
    #expect(snapshot.lastError?.at == 1)
    #expect(snapshot.needsReset)
  }

  @Test func aSuccessClearsTheErrorAndRearmsOnlyWhenTheStreakMoved() {
    var machine = started()
    _ = machine.wake(.poll, at: 0, stamp: 0)
    #expect(machine.attemptFinished(.success, needsReset: false, at: 10) == [.publish])
    _ = machine.wake(.poll, at: 0, stamp: 0)
    _ = machine.attemptFinished(failure, needsReset: false, at: 11)
    _ = machine.wake(.poll, at: 0, stamp: 0)
    #expect(armed(machine.attemptFinished(.success, needsReset: false, at: 12)) == [Self.interval])
    #expect(machine.snapshot.lastSuccessAt == 12)
    #expect(machine.snapshot.lastError == nil)
    #expect(machine.snapshot.phase == .idle)
  }

  // MARK: Stall

  @Test func theSecondTickOfOneAttemptMarksItStalledOnce() {
    var machine = started()
    _ = machine.wake(.start, at: 5, stamp: 0)
    #expect(armed(machine.timerFired(machine.timer!, at: 0, stamp: 1)) == [Self.interval])
    #expect(machine.snapshot.phase == .syncing)
    let second = machine.timerFired(machine.timer!, at: 0, stamp: 2)
    #expect(armed(second) == [Self.interval, .seconds(30)])
    #expect(begun(second).isEmpty)
    #expect(machine.snapshot.phase == .stalled)
    #expect(machine.snapshot.consecutiveFailures == 1)
    #expect(machine.snapshot.attemptStartedAt == 5)
    for _ in 0..<5 { _ = machine.timerFired(machine.timer!, at: 0, stamp: 3) }
    #expect(machine.snapshot.consecutiveFailures == 1)
    // One catch-up run, whatever came in between.
    let end = machine.attemptFinished(.success, needsReset: false, at: 0)
    #expect(begun(end).count == 1)
    #expect(begun(machine.attemptFinished(.success, needsReset: false, at: 0)).isEmpty)
  }

  @Test func aWakeClearsTheStallMarkWhileTheSlotStaysOccupied() {
    var machine = started()
    _ = machine.wake(.start, at: 0, stamp: 0)
    _ = machine.timerFired(machine.timer!, at: 0, stamp: 0)
    _ = machine.timerFired(machine.timer!, at: 0, stamp: 0)
    let actions = machine.wake(.foreground, at: 0, stamp: 0)
    #expect(armed(actions) == [Self.interval])
    #expect(begun(actions).isEmpty)
    #expect(machine.snapshot.phase == .syncing)
    #expect(machine.snapshot.consecutiveFailures == 0)
  }
}
