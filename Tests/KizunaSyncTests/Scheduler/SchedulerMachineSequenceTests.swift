import HostKit
import Testing

@testable import KizunaSync

/// What holds after any sequence of events, in any order.
@Suite struct SchedulerMachineSequenceTests {
  /// Follows the actions as the runner would.
  struct World {
    var machine: SchedulerMachine
    var timer: UInt64?
    var inFlight: SchedulerMachine.Attempt?
    var begun = 0

    mutating func follow(_ actions: [SchedulerMachine.Action]) {
      for action in actions {
        switch action {
        case .arm(let number, let base):
          #expect(machine.isRunning, "a timer armed on a stopped scheduler")
          #expect(base >= machine.interval, "a base below the interval")
          #expect(base <= max(machine.interval, SchedulerMachine.backoffCap), "a base above the cap")
          timer = number
        case .disarm: timer = nil
        case .begin(let attempt):
          #expect(inFlight == nil, "two attempts at once")
          #expect(machine.isGateOpen, "an attempt behind a shut gate")
          inFlight = attempt
          begun += 1
        case .publish: break
        }
      }
    }
  }

  @Test(arguments: UInt64(1)...60)
  func theInvariantsHoldAfterEveryEvent(seed: UInt64) {
    var random = SeededRandom(seed)
    var world = World(machine: SchedulerMachine(interval: [0, .seconds(1), .seconds(15), .seconds(90)][Int(seed % 4)]))
    let reasons: [KizunaSyncWakeReason] = [.poll, .foreground, .path, .doorbell, .localWrite, .start]
    for step in 0..<400 {
      let wall = Int64(step)
      let stamp = UInt64(step)
      var ended = false
      switch Int.random(in: 0..<12, using: &random) {
      case 0: world.follow(world.machine.start())
      case 1: world.follow(world.machine.stop())
      case 2: world.follow(world.machine.pathMonitorArmed())
      case 3, 4:
        world.follow(world.machine.pathReported(satisfied: .random(using: &random), at: wall, stamp: stamp))
      case 5, 6: world.follow(world.machine.wake(reasons.randomElement(using: &random)!, at: wall, stamp: stamp))
      case 7: world.follow(world.machine.setInterval([0, .seconds(2), .seconds(40)].randomElement(using: &random)!))
      case 8, 9:
        if let timer = world.timer { world.follow(world.machine.timerFired(timer, at: wall, stamp: stamp)) }
      default:
        guard world.inFlight != nil else { continue }
        world.inFlight = nil
        ended = true
        let outcomes: [SchedulerMachine.Outcome] = [.success, .skipped, .failure(code: nil, message: "x")]
        world.follow(
          world.machine.attemptFinished(
            outcomes.randomElement(using: &random)!, needsReset: false, at: wall))
      }
      let snapshot = world.machine.snapshot
      #expect(world.timer == world.machine.timer)
      #expect(world.machine.timer == nil || world.machine.isRunning)
      #expect(!world.machine.isRunning || (world.machine.timer != nil) == (world.machine.interval > 0))
      #expect((world.inFlight != nil) == (snapshot.attemptStartedAt != nil))
      #expect((snapshot.phase == .offline) == !world.machine.isGateOpen)
      #expect(snapshot.phase != .backoff || snapshot.consecutiveFailures > 0)
      #expect(!ended || snapshot.phase != .stalled)
    }
    #expect(world.begun > 0)
  }

  /// After any history, once the path is satisfied and attempts end, one doorbell is one run.
  @Test(arguments: UInt64(100)...120)
  func aDoorbellIsNeverLost(seed: UInt64) {
    var random = SeededRandom(seed)
    var world = World(machine: SchedulerMachine(interval: .seconds(15)))
    world.follow(world.machine.start())
    for _ in 0..<50 {
      let satisfied = Bool.random(using: &random)
      world.follow(world.machine.pathReported(satisfied: satisfied, at: 0, stamp: 0))
      world.follow(world.machine.wake(.poll, at: 0, stamp: 0))
      if Bool.random(using: &random), world.inFlight != nil {
        world.inFlight = nil
        world.follow(world.machine.attemptFinished(.failure(code: nil, message: ""), needsReset: false, at: 0))
      }
    }
    world.follow(world.machine.pathReported(satisfied: true, at: 0, stamp: 0))
    let before = world.begun
    world.follow(world.machine.wake(.doorbell, at: 0, stamp: 1))
    while world.inFlight != nil {
      world.inFlight = nil
      world.follow(world.machine.attemptFinished(.success, needsReset: false, at: 0))
    }
    #expect(world.begun > before)
    #expect(world.machine.snapshot.phase == .idle)
  }
}
