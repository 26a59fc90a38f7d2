import HostKit
import Testing

@testable import SupabaseSession

@Suite struct SessionMachineTests {
  private func token(_ name: String, at now: UInt64, lifetime: UInt64 = .seconds(3600)) -> AccessToken {
    AccessToken(value: name, claims: nil, receivedAt: now, remaining: lifetime)
  }

  @Test func anAttemptIsStartedOnceAndOthersWait() {
    var machine = SessionMachine(.server(hasPassword: true))
    let answer1 = machine.demand(at: 0)
    #expect(answer1 == .attempt(.signIn))
    let answer2 = machine.demand(at: 0)
    #expect(answer2 == .wait)
    let answer3 = machine.demand(at: 0, force: true)
    #expect(answer3 == .wait)
    let answer4 = machine.wake(at: .seconds(100))
    #expect(answer4 == nil)
    machine.received(token("a", at: 0), refreshToken: Secret("r"), at: 0, draw: 0)
    let answer5 = machine.demand(at: 0)
    #expect(answer5 == .token(token("a", at: 0)))
    let answer6 = machine.demand(at: 0, force: true)
    #expect(answer6 == .attempt(.refresh(Secret("r"))))
  }

  /// The WebSocket was refused with a token that requests still get through with: without a new one it stays closed.
  @Test func anotherTokenThatWasAskedForInVainIsTriedForAgain() {
    var machine = SessionMachine(.server(hasPassword: true))
    _ = machine.demand(at: 0)
    machine.received(token("a", at: 0), refreshToken: nil, at: 0, draw: 0)
    let forced = machine.demand(at: .seconds(10), force: true)
    #expect(forced == .attempt(.signIn))
    machine.failed(SessionFailure(.authentication, ""), at: .seconds(10), draw: 0)
    #expect(machine.nextWake == .seconds(12.5))
    let early = machine.wake(at: .seconds(12))
    #expect(early == nil)
    let again = machine.wake(at: .seconds(12.5))
    #expect(again == .signIn)
    machine.failed(SessionFailure(.transient, ""), at: .seconds(12.5), draw: 0)
    #expect(machine.nextWake.map { $0 <= .seconds(14.5) } == true)
    _ = machine.wake(at: .seconds(15))
    machine.received(token("b", at: .seconds(15)), refreshToken: nil, at: .seconds(15), draw: 0)
    #expect(machine.nextWake == .seconds(15 + 3540))
  }

  /// Whoever asks for one new token after the other is not answered by the server as fast as it asks.
  @Test func newTokensAreNotReplacedWithoutEnd() {
    var machine = SessionMachine(.server(hasPassword: true))
    _ = machine.demand(at: 0)
    machine.received(token("0", at: 0), refreshToken: Secret("r"), at: 0, draw: 0)
    var attempts = 0
    for second in 0..<600 {
      let now = UInt64.seconds(Double(second))
      if case .attempt = machine.demand(at: now, force: true) {
        attempts += 1
        machine.received(token("n\(second)", at: now), refreshToken: nil, at: now, draw: 0)
      }
      // Nothing is armed that would go on asking instead.
      #expect(machine.nextWake.map { $0 > now + .seconds(60) } == true)
    }
    #expect(attempts == 30)
    guard case .failure(let failure) = machine.demand(at: .seconds(599), force: true) else {
      Issue.record("another attempt")
      return
    }
    #expect(failure.kind == .authentication)
    // The token is as good as before for everybody else, and a person may try at once.
    #expect(machine.freshToken(at: .seconds(599)) != nil)
    _ = machine.poke(at: .seconds(599), any: true)
    let again = machine.demand(at: .seconds(599), force: true)
    #expect(again == .attempt(.refresh(Secret("r"))))
  }

  /// The end of the token comes while a request hangs: it is announced a little later, and the timer waits for that.
  @Test func anAttemptThatHangsPastTheEndWakesOnce() {
    var machine = SessionMachine(.server(hasPassword: true))
    _ = machine.demand(at: 0)
    machine.received(token("a", at: 0, lifetime: .seconds(100)), refreshToken: nil, at: 0, draw: 0)
    let way = machine.wake(at: .seconds(98))
    #expect(way == .signIn)
    #expect(machine.nextWake == .seconds(103))
    let early = machine.withdrawIfOver(at: .seconds(102))
    #expect(!early)
    var wakes = 0
    var now: UInt64 = .seconds(98)
    while let next = machine.nextWake, wakes < 10 {
      now = max(now, next)
      wakes += 1
      _ = machine.wake(at: now)
      _ = machine.withdrawIfOver(at: now)
    }
    #expect(wakes == 1 && now == .seconds(103))
    #expect(machine.isWithdrawn)
    machine.received(token("b", at: now), refreshToken: nil, at: now, draw: 0)
    #expect(!machine.isWithdrawn && machine.freshToken(at: now) != nil)
  }

  @Test func aFileWithoutAnotherTokenIsNotReadAgainUntilItIsWritten() {
    var machine = SessionMachine(.reader)
    _ = machine.demand(at: 0)
    machine.received(token("a", at: 0), refreshToken: nil, at: 0, draw: 0)
    _ = machine.demand(at: .seconds(10), force: true)
    machine.received(token("a", at: 0), refreshToken: nil, at: .seconds(10), draw: 0)
    #expect(machine.nextWake == .seconds(3540))
  }

  @Test func nothingIsArmedBeforeAnybodyAsks() {
    #expect(SessionMachine(.reader).nextWake == nil)
    #expect(SessionMachine(.server(hasPassword: true)).nextWake == nil)
    #expect(SessionMachine(.server(hasPassword: true), refreshToken: Secret("r")).nextWake == nil)
  }

  @Test func readingTheSameGoodTokenAgainIsNoFailure() {
    var machine = SessionMachine(.reader)
    _ = machine.demand(at: 0)
    machine.failed(SessionFailure(.configuration, ""), at: 0, draw: 0)
    _ = machine.sourceChanged()
    machine.received(token("a", at: 0), refreshToken: nil, at: 0, draw: 0)
    let way = machine.sourceChanged()
    #expect(way == .read)
    let isNew = machine.received(token("a", at: 0), refreshToken: nil, at: .seconds(1), draw: 0)
    #expect(!isNew)
    #expect(machine.failure == nil)
    #expect(machine.freshToken(at: .seconds(1))?.value == "a")
    #expect(machine.nextWake == .seconds(3540))
  }

  @Test func aTokenThatNobodyReplacesIsReadAgainRarely() {
    var machine = SessionMachine(.reader)
    let end = UInt64.seconds(3600)
    var now: UInt64 = 0
    _ = machine.demand(at: now)
    machine.received(token("a", at: now, lifetime: end), refreshToken: nil, at: now, draw: 0)
    var reads = 0
    while let next = machine.nextWake, next < 2 * end {
      now = max(now, next)
      if machine.wake(at: now) != nil {
        reads += 1
        machine.received(
          token("a", at: now, lifetime: end > now ? end - now : 0), refreshToken: nil, at: now, draw: 0)
      }
      _ = machine.withdrawIfOver(at: now)
      if reads > 100 { break }
    }
    // Twice in the last minute, then every few minutes.
    #expect(reads <= 3 + 3600 / 150)
    #expect(machine.isWithdrawn)
  }

  @Test func withoutCredentialsItSaysSo() {
    var machine = SessionMachine(.server(hasPassword: false))
    guard case .failure(let failure) = machine.demand(at: 0) else {
      Issue.record("no failure")
      return
    }
    #expect(failure.kind == .authentication)
    #expect(machine.nextWake == nil)
  }

  @Test(arguments: [(0.0, 0.5), (1.0, 1.0)]) func theFirstPauseIsDrawnFromTheUpperHalf(draw: Double, seconds: Double) {
    var machine = SessionMachine(.server(hasPassword: true))
    _ = machine.demand(at: 0)
    machine.failed(SessionFailure(.transient, ""), at: 0, draw: draw)
    #expect(machine.notBefore == .seconds(seconds))
    #expect(machine.nextWake == .seconds(seconds))
  }

  @Test func theServersWishForAPauseIsHonouredWithinReason() {
    var machine = SessionMachine(.server(hasPassword: true))
    _ = machine.demand(at: 0)
    machine.failed(SessionFailure(.transient, "", retryAfter: .seconds(86_400)), at: 0, draw: 0)
    #expect(machine.notBefore == SessionMachine.slowDelay)
  }

  @Test func aRefusalDuringAnAttemptWaitsForItsOutcome() {
    var machine = SessionMachine(.server(hasPassword: true))
    _ = machine.demand(at: 0)
    machine.received(token("a", at: 0), refreshToken: Secret("r"), at: 0, draw: 0)
    _ = machine.demand(at: 0, force: true)
    let answer7 = machine.invalidate("a", at: 0, draw: 0)
    #expect(answer7 == nil)
    #expect(!machine.isUsable(at: 0))
    machine.received(token("b", at: 0), refreshToken: Secret("s"), at: 0, draw: 0)
    #expect(machine.freshToken(at: 0)?.value == "b")
  }

  /// Credentials that were good a moment ago are soon tried again, a few times; then the refusal is believed.
  @Test(arguments: [SessionFailure.Kind.authentication, .configuration])
  func aRefusalOfWhatWorkedIsDoubtedAFewTimes(kind: SessionFailure.Kind) {
    func pauses(_ machine: inout SessionMachine, from start: UInt64) -> [Double] {
      var now = start
      return (0..<5).map { _ in
        machine.failed(SessionFailure(kind, ""), at: now, draw: 0.5)
        let pause = (machine.notBefore - now).inSeconds
        now = machine.notBefore
        let way = machine.wake(at: now)
        #expect(way != nil)
        return pause
      }
    }
    var machine = SessionMachine(.server(hasPassword: true))
    _ = machine.demand(at: 0)
    #expect(pauses(&machine, from: 0) == [300, 300, 300, 300, 300])

    var now = UInt64.seconds(10_000)
    machine.received(token("a", at: now), refreshToken: Secret("r"), at: now, draw: 0)
    _ = machine.demand(at: now, force: true)
    #expect(pauses(&machine, from: now) == [5, 10, 20, 300, 300])
    // A token that is refused again at once changes nothing.
    now += .seconds(700)
    machine.received(token("b", at: now), refreshToken: Secret("s"), at: now, draw: 0)
    _ = machine.demand(at: now, force: true)
    #expect(pauses(&machine, from: now) == [300, 300, 300, 300, 300])
    // Ten minutes without a refusal do.
    now += .seconds(5_000)
    machine.received(token("c", at: now), refreshToken: Secret("t"), at: now, draw: 0)
    _ = machine.demand(at: now, force: true)
    #expect(pauses(&machine, from: now) == [5, 10, 20, 300, 300])
  }

  /// A random history of everything that can happen, for each source. What must hold after every step is checked.
  @Test(arguments: 0..<300) func generatedHistories(seed: Int) {
    var random = SeededRandom(UInt64(seed))
    let source: SessionMachine.Source = [.reader, .server(hasPassword: true), .server(hasPassword: false)][seed % 3]
    var machine = SessionMachine(source, refreshToken: seed % 3 == 2 ? Secret("r0") : nil)
    var now: UInt64 = .seconds(1)
    var way: SessionMachine.Way?
    var names = 0
    var starts: [UInt64] = []

    func started(_ new: SessionMachine.Way?) {
      guard let new else { return }
      #expect(way == nil, "a second attempt was started")
      way = new
      starts.append(now)
    }

    for _ in 0..<200 {
      now +=
        UInt64.random(in: 0...1, using: &random) == 0
        ? .milliseconds(Double.random(in: 0...500, using: &random))
        : .seconds(Double.random(in: 0...400, using: &random))
      let draw = Double.random(in: 0..<1, using: &random)
      switch Int.random(in: 0...10, using: &random) {
      case 0...2:
        let force = Bool.random(using: &random)
        switch machine.demand(at: now, force: force) {
        case .attempt(let new): started(new)
        case .wait: #expect(way != nil, "waits for nothing")
        case .token(let token):
          #expect(now < token.expiresAt, "a token that is over was handed out")
          #expect(!machine.isRefused)
        case .failure: #expect(machine.failure != nil)
        }
      case 3:
        started(machine.wake(at: now))
        if let next = machine.nextWake, way == nil, next <= now {
          // Then it can only be the end of the token that is due.
          let isWithdrawn = machine.withdrawIfOver(at: now)
          #expect(isWithdrawn)
          #expect(machine.nextWake.map { $0 > now } ?? true, "a timer that fires for ever")
        }
      case 4:
        started(machine.poke(at: now, any: Bool.random(using: &random)))
      case 5:
        if let token = machine.token { started(machine.invalidate(token.value, at: now, draw: draw)) }
      case 6:
        started(machine.sourceChanged())
      case 7:
        started(machine.calendarSaysExpired(at: now))
      default:
        guard let current = way else { continue }
        way = nil
        switch Int.random(in: 0...3, using: &random) {
        case 0:
          machine.failed(
            SessionFailure(Bool.random(using: &random) ? .transient : .configuration, ""), at: now, draw: draw)
        case 1 where current != .read:
          started(machine.refused(SessionFailure(.authentication, ""), way: current, at: now, draw: draw))
        default:
          names += Bool.random(using: &random) ? 1 : 0
          let lifetime = UInt64.seconds(Double.random(in: 0...4000, using: &random))
          machine.received(
            token("t\(names)", at: now, lifetime: lifetime), refreshToken: Secret("r\(names)"), at: now, draw: draw)
        }
      }
      #expect(machine.isAttempting == (way != nil))
      if way == nil, machine.token == nil, machine.failure?.kind == .transient {
        #expect(machine.nextWake != nil, "nobody would try again")
      }
    }
    #expect(starts.count > 0)
  }

  /// Left alone with a server that always fails, it tries for ever and never often.
  @Test(arguments: SessionFailure.Kind.allOfServer) func leftAloneItTriesForEverButRarely(kind: SessionFailure.Kind) {
    var random = SeededRandom(7)
    var machine = SessionMachine(.server(hasPassword: true))
    var now: UInt64 = 0
    _ = machine.demand(at: now)
    machine.failed(SessionFailure(kind, ""), at: now, draw: 0)
    var attempts = 0
    while now < .seconds(86_400), let next = machine.nextWake {
      now = max(next, now)
      let way = machine.wake(at: now)
      #expect(way != nil)
      attempts += 1
      machine.failed(SessionFailure(kind, ""), at: now, draw: Double.random(in: 0..<1, using: &random))
    }
    #expect(now >= .seconds(86_400))
    #expect(attempts <= (kind == .transient ? 86_400 / 15 : 86_400 / 150))
  }
}

extension SessionFailure.Kind {
  fileprivate static let allOfServer: [Self] = [.transient, .authentication, .configuration]
}
