import HostKit
import Testing

@testable import LocalStack

@Suite struct AuthStateTests {
  private func state(_ changes: [AuthChange]) -> AuthState {
    var state = AuthState()
    for change in changes { state.apply(change) }
    return state
  }

  @Test func aSecondUseMomentsLaterGetsTheCurrentToken() {
    let state = state([
      .session(id: "s", user: "u"), .token("a", RefreshToken(session: "s", isRevoked: true, changedAt: 100)),
      .token("b", RefreshToken(session: "s", parent: "a", isRevoked: true, changedAt: 105)),
      .token("c", RefreshToken(session: "s", parent: "b", changedAt: 105)),
    ])
    let soon = state.refresh("a", newToken: "d", now: 110, reuseInterval: 10)
    #expect(soon.outcome == .granted(session: "s", user: "u", token: "c"))
    #expect(soon.changes.isEmpty)
    let late = state.refresh("a", newToken: "d", now: 111, reuseInterval: 10)
    #expect(late.outcome == .reused)
    #expect(late.changes == [.ended(session: "s")])
  }

  @Test func changesSurviveAsJSON() {
    let changes: [AuthChange] = [
      .session(id: "s", user: "u"), .token("a", RefreshToken(session: "s", isRevoked: true, changedAt: 1)),
      .token("b", RefreshToken(session: "s", parent: "a", changedAt: 2)),
    ]
    #expect(changes.map { AuthChange($0.json) } == changes)
    #expect(state(changes).changes == changes)
    #expect(AuthChange(AuthChange.ended(session: "s").json) == .ended(session: "s"))
    #expect(AuthChange(["k": "other"]) == nil)
  }
}
