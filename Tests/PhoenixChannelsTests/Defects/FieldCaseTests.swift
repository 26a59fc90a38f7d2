import HostKit
import PhoenixChannels
import Testing

/// Cases from the field that are about one topic on a socket that stays.
@Suite struct FieldCaseTests {
  enum Ending: CaseIterable, Sendable {
    /// The join is refused.
    case refused
    /// The join is accepted, and the channel crashes at once.
    case crashed
    /// The join is accepted, and the channel is closed at once.
    case closed
    /// The join is not answered.
    case unanswered
  }

  /// supabase/realtime#1414: a channel that errors for ten minutes is joined within a delay of the server's recovery, and
  /// the socket itself was replaced after twenty failures in a row. No restart of anything is needed.
  @Test(arguments: Ending.allCases, [0.0, 0.5, 1.0])
  func f01_aChannelThatErrorsForTenMinutesComesBack(ending: Ending, chance: Double) {
    var driver = MachineDriver.open()
    driver.jitter = { chance }
    var joins: [UInt64] = []
    let end = driver.now + .seconds(600)
    while driver.now < end {
      step(&driver, at: &joins) { driver in
        switch ending {
        case .refused: driver.refuse("a", "UnknownErrorOnChannel: no")
        case .crashed, .closed:
          guard let ref = driver.joinRef("a") else { return }
          driver.accept("a")
          driver.receive(ending == .crashed ? "phx_error" : "phx_close", "a", joinRef: ref, ref: ref)
        case .unanswered: break
        }
      }
    }
    // Without end, growing from one second to thirty.
    let longest = ending == .unanswered ? 31.0 + 25 : 31
    #expect(joins.count >= Int(600 / (longest + 1)))
    let gaps = zip(joins, joins.dropFirst()).map { ($1 - $0).inSeconds }
    if ending == .refused { #expect((gaps.min() ?? 0) >= 0.5 && (gaps.max() ?? 99) <= longest) }
    let counters = driver.status.counters
    if ending == .refused, joins.count > 40 { #expect(counters.socketsReplaced == 1) }

    let healed = driver.now
    while driver.state("a") != .joined, driver.now < healed + .seconds(120) {
      step(&driver, at: &joins) { $0.accept("a") }
    }
    #expect(driver.state("a") == .joined)
    #expect((driver.now - healed).inSeconds <= longest)
    #expect(driver.rules.violations == [])
  }

  /// A quarter of a second beside a server that answers everything but the join, which `answer` does.
  private func step(_ driver: inout MachineDriver, at joins: inout [UInt64], _ answer: (inout MachineDriver) -> Void) {
    if driver.status.state == .connecting { driver.feed(.opened) }
    if driver.closes > 0 { driver.feed(.closed(code: 1000, reason: "")) }
    if !driver.joins().isEmpty { joins.append(driver.now) }
    let heartbeat = !driver.sent("heartbeat").isEmpty
    driver.forget()
    if heartbeat { driver.answerHeartbeat() }
    if driver.state("a") == .joining { answer(&driver) }
    driver.advance(0.25)
  }

  /// Twenty refusals replace the socket, and the topic's count begins anew on the next one.
  @Test func f01_theSocketIsReplacedAfterTwentyFailuresInARow() {
    var driver = MachineDriver.open()
    var joins: [UInt64] = []
    var refusals = 0
    while driver.status.counters.socketsReplaced == 0, refusals < 100 {
      step(&driver, at: &joins) { driver in
        driver.refuse("a", "MusterJoinError: no")
        refusals += 1
      }
    }
    #expect(refusals == driver.machine.policy.join.failuresBeforeReplacing)
    #expect(driver.closes == 1)
    #expect(driver.status.topics.first?.failuresInARow == 0)
  }
}
