import HostKit
import Testing

@testable import KizunaSync

@Suite struct PushPolicyTests {
  private func failure(_ kind: RemoteFailure.Kind, _ code: String? = nil) -> RemoteFailure {
    RemoteFailure(kind, KizunaSyncError(.remote, "message"), serverCode: code)
  }

  @Test func aBatchThatIsTooLargeIsHalvedAndStaysSo() {
    var policy = PushPolicy()
    do {
      let reaction = policy.react(to: failure(.permanent, "KZP02"), count: 500, isGroup: false)
      #expect(reaction == .resend)
    }
    #expect(policy.slice == 250)
    policy.succeeded()
    #expect(policy.slice == 250)
  }

  @Test func anotherPermanentErrorSendsTheHeadAloneAndGrowsAgain() {
    var policy = PushPolicy()
    do {
      let reaction = policy.react(to: failure(.permanent, "22023"), count: 40, isGroup: false)
      #expect(reaction == .resend)
    }
    #expect(policy.slice == 1)
    policy.succeeded()
    policy.succeeded()
    #expect(policy.slice == 4)
    do {
      let reaction = policy.react(to: failure(.permanent, "22023"), count: 1, isGroup: false)
      #expect(reaction == .count)
    }
  }

  @Test func groupsAreCountedOrGivenUpWhole() {
    var policy = PushPolicy()
    do {
      let reaction = policy.react(to: failure(.permanent, "22023"), count: 3, isGroup: true)
      #expect(reaction == .count)
    }
    do {
      let reaction = policy.react(to: failure(.permanent, "KZP02"), count: 3, isGroup: true)
      #expect(reaction == .giveUp(reason: "message"))
    }
    #expect(policy.slice == PushPolicy.largestSlice)
  }

  @Test func aRequestTheServerFindsTooLargeIsHalved() {
    var policy = PushPolicy()
    do {
      let reaction = policy.react(to: failure(.tooLarge), count: 9, isGroup: false)
      #expect(reaction == .resend)
    }
    #expect(policy.slice == 4)
    do {
      let reaction = policy.react(to: failure(.tooLarge), count: 1, isGroup: false)
      #expect(reaction == .count)
    }
  }

  @Test(arguments: [RemoteFailure.Kind.unreachable, .unauthorized, .answered, .malformed, .noSession])
  func whatIsNotTheWritesFaultCountsForNothing(kind: RemoteFailure.Kind) {
    var policy = PushPolicy()
    do {
      let reaction = policy.react(to: failure(kind), count: 9, isGroup: false)
      #expect(reaction == .fail)
    }
    #expect(policy == PushPolicy())
  }

  @Test func thePageLimitIsHalvedAndRestored() {
    var limit = PageLimit(configured: nil)
    #expect(limit.value == nil)
    for expected in [250, 125] {
      let isHalved = limit.halve()
      #expect(isHalved && limit.value == expected)
    }
    limit.succeeded()
    #expect(limit.value == 250)
    limit.succeeded()
    #expect(limit.value == nil)
    var small = PageLimit(configured: 2)
    let results = [small.halve(), small.halve()]
    #expect(results == [true, false] && small.value == 1)
    small.succeeded()
    #expect(small.value == 2)
  }
}
