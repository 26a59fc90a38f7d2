import Glibc
import HostKit
import Testing

/// The gateway's process is stopped while its peer vanishes without a word. `KIZUNA_STOP_SECONDS` says for how long; the
/// long run makes it 120, where the policy is the product's own. Shorter stops shrink the policy in proportion.
///
/// How soon it converges afterwards is judged only where the number is given: then nothing else runs beside it.
@Suite struct StoppedProcessTests {
  private static let given = ProcessEnvironment.variables["KIZUNA_STOP_SECONDS"].flatMap { Double($0) }
  static let seconds = given ?? 12

  private static var policy: String {
    let share = min(seconds / 120, 1)
    return """
      "pollInterval": \(15 * share), "resumeThreshold": \(30 * share),
      "realtime": {"heartbeatInterval": \(25 * share), "heartbeatDeadline": \(10 * share)},
      """
  }

  @Test(.timeLimit(.minutes(10)))
  func itConvergesSoonAfterItGoesOn() async throws {
    try await FaultyHost.with(.program, policy: Self.policy) { host in
      let process = try #require(host.process)
      try host.writeHere("before")
      try await host.converge(["before"])
      await host.expectJoinedOnce("at first")

      process.send(signal: SIGSTOP)
      host.proxy.vanish()
      try host.writeHere("here")
      try await host.writeThere("there")
      try await SystemClock.shared.sleep(nanoseconds: .seconds(Self.seconds))
      process.send(signal: SIGCONT)
      let start = SystemClock.monotonic
      try await host.converge(["here", "there"])
      let took = SystemClock.monotonic - start
      if Self.given != nil { #expect(took <= .seconds(15)) }
      await host.expectJoinedOnce("afterwards")
      print("stopped for \(Self.seconds) s, converged \(took.inSeconds) s later")
    }
  }
}
