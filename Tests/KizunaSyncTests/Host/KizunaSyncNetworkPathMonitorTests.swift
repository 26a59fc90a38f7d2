import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

@Suite struct KizunaSyncNetworkPathMonitorTests {
  final class ScriptedRoutes: RouteSource {
    struct State: Sendable {
      var reachable: Bool?
      var onChange: (@Sendable () -> Void)?
      var asked: [IPAddress] = []
    }
    let state: Locked<State>

    init(reachable: Bool?) { state = Locked(State(reachable: reachable)) }

    func isReachable(_ address: IPAddress) -> Bool? {
      state.withLock { state in
        state.asked.append(address)
        return state.reachable
      }
    }

    func watch(_ onChange: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)? {
      state.withLock { $0.onChange = onChange }
      return { [state] in state.withLock { $0.onChange = nil } }
    }

    func change(to reachable: Bool?) {
      let onChange = state.withLock { state in
        state.reachable = reachable
        return state.onChange
      }
      onChange?()
    }
  }

  let clock = VirtualClock()
  let reports = Locked<[Bool]>([])
  static let server = IPAddress("192.0.2.7")!

  func monitor(_ routes: ScriptedRoutes, address: IPAddress? = server) -> KizunaSyncNetworkPathMonitor {
    let monitor = KizunaSyncNetworkPathMonitor(routes: routes, clock: clock)
    monitor.follow({ address }, clock: clock)
    monitor.start { [reports] satisfied in reports.withLock { $0.append(satisfied) } }
    return monitor
  }

  @Test(
    arguments: [
      (IPAddress("127.0.0.1"), false, true), (IPAddress("::1"), false, true), (nil, false, true), (server, nil, true),
      (server, true, true), (server, false, false), (IPAddress("2001:db8::7"), false, false),
    ] as [(IPAddress?, Bool?, Bool)])
  func onlyAClearNoIsUnsatisfied(address: IPAddress?, reachable: Bool?, satisfied: Bool) {
    let monitor = monitor(ScriptedRoutes(reachable: reachable), address: address)
    #expect(reports.withLock { $0 } == [satisfied])
    monitor.cancel()
  }

  @Test func changesAreReportedOnce() {
    let routes = ScriptedRoutes(reachable: true)
    let monitor = monitor(routes)
    routes.change(to: true)
    routes.change(to: false)
    routes.change(to: false)
    routes.change(to: true)
    #expect(reports.withLock { $0 } == [true, false, true])
    monitor.cancel()
    routes.change(to: false)
    #expect(reports.withLock { $0 } == [true, false, true])
  }

  @Test func whileThereIsNoWayTheGateOpensForAMomentEveryFiveMinutes() async {
    let routes = ScriptedRoutes(reachable: false)
    let monitor = monitor(routes)
    await clock.advance(by: .seconds(299))
    #expect(reports.withLock { $0 } == [false])
    await clock.advance(by: .seconds(2))
    #expect(reports.withLock { $0 } == [false, true, false])
    await clock.advance(by: .seconds(300))
    #expect(reports.withLock { $0 } == [false, true, false, true, false])
    routes.change(to: true)
    #expect(clock.pendingDeadlines.isEmpty)
    monitor.cancel()
  }

  @Test func aSatisfiedPathArmsNoTimer() {
    let monitor = monitor(ScriptedRoutes(reachable: true))
    #expect(clock.pendingDeadlines.isEmpty)
    monitor.cancel()
  }

  @Test func cancelEndsTheWatchAndTheTimer() {
    let routes = ScriptedRoutes(reachable: false)
    let monitor = monitor(routes)
    #expect(clock.pendingDeadlines.count == 1)
    monitor.cancel()
    monitor.cancel()
    #expect(clock.pendingDeadlines.isEmpty)
    #expect(routes.state.withLock { $0.onChange } == nil)
  }

  @Test func itMayStartAgain() {
    let routes = ScriptedRoutes(reachable: true)
    let monitor = monitor(routes)
    monitor.cancel()
    monitor.start { [reports] satisfied in reports.withLock { $0.append(satisfied) } }
    routes.change(to: false)
    #expect(reports.withLock { $0 } == [true, true, false])
    monitor.cancel()
  }

  @Test func oneRunIsLetThroughAndNoMore() async {
    let body = RunBody()
    let routes = ScriptedRoutes(reachable: false)
    let path = KizunaSyncNetworkPathMonitor(routes: routes, clock: clock)
    let scheduler = KizunaSyncScheduler(
      clock: clock, client: KizunaSyncClient(), pathMonitor: path, observeForeground: false, refreshSession: { true },
      sync: { try await body.run() })
    path.follow({ Self.server }, clock: clock)
    scheduler.start()
    await clock.settle(until: { scheduler.health().attemptStartedAt == nil })
    #expect(scheduler.health().phase == .offline)
    let before = body.calls
    await clock.advance(by: .seconds(299))
    #expect(body.calls == before)
    await clock.advance(by: .seconds(2))
    #expect(await clock.settle(until: { body.calls == before + 1 && scheduler.health().attemptStartedAt == nil }))
    #expect(scheduler.health().phase == .offline)
    routes.change(to: true)
    #expect(await clock.settle(until: { body.calls == before + 2 }))
    scheduler.stop()
  }
}
