import HostKit
import Testing

@testable import KizunaSync

@Suite struct PushPolicyTests {
  private func failure(_ kind: RemoteFailure.Kind, _ code: String? = nil, status: Int? = nil) -> RemoteFailure {
    RemoteFailure(kind, KizunaSyncError(.remote, "message"), serverCode: code, status: status)
  }

  @Test func aBatchThatIsTooLargeIsHalvedAndStaysSo() {
    var policy = PushPolicy()
    do {
      let reaction = policy.react(to: failure(.permanent, "KZP02"), count: 500, isGroup: false, bytes: 1000)
      #expect(reaction == .resend)
    }
    #expect(policy.slice == 250)
    policy.succeeded()
    #expect(policy.slice == 250)
  }

  @Test func anotherPermanentErrorSendsTheHeadAloneAndGrowsAgain() {
    var policy = PushPolicy()
    do {
      let reaction = policy.react(to: failure(.permanent, "22023"), count: 40, isGroup: false, bytes: 1000)
      #expect(reaction == .resend)
    }
    #expect(policy.slice == 1)
    policy.succeeded()
    policy.succeeded()
    #expect(policy.slice == 4)
    do {
      let reaction = policy.react(to: failure(.permanent, "22023"), count: 1, isGroup: false, bytes: 1000)
      #expect(reaction == .count)
    }
  }

  @Test func groupsAreCountedOrGivenUpWhole() {
    var policy = PushPolicy()
    do {
      let reaction = policy.react(to: failure(.permanent, "22023"), count: 3, isGroup: true, bytes: 1000)
      #expect(reaction == .count)
    }
    do {
      let reaction = policy.react(to: failure(.permanent, "KZP02"), count: 3, isGroup: true, bytes: 1000)
      #expect(reaction == .giveUp(.tooManyWrites))
    }
    #expect(policy.slice == PushPolicy.largestSlice)
  }

  @Test func aRequestTheServerFindsTooLargeIsHalved() {
    var policy = PushPolicy()
    do {
      let reaction = policy.react(to: failure(.tooLarge, status: 413), count: 9, isGroup: false, bytes: 1000)
      #expect(reaction == .resend)
    }
    #expect(policy.slice == 4 && policy.bytes == 500)
    policy.succeeded()
    #expect(policy.slice == 8 && policy.bytes == 500)
  }

  /// Nothing smaller can be sent: the queue must not wait for it.
  @Test(arguments: [(1, false), (1, true), (20, true)])
  func whatIsTooLargeByItselfIsGivenUpAtOnce(count: Int, isGroup: Bool) {
    var policy = PushPolicy()
    let reaction = policy.react(to: failure(.tooLarge, status: 413), count: count, isGroup: isGroup, bytes: 65_536)
    #expect(reaction == .giveUp(.tooLarge))
    #expect(policy == PushPolicy())
    // What is this small was refused for another reason, and so would be the next.
    let small = policy.react(to: failure(.tooLarge, status: 413), count: count, isGroup: isGroup, bytes: 65_535)
    #expect(small == .fail)
  }

  /// The server has decided what it was sent; only its answer did not fit.
  @Test func anAnswerThatIsTooLargeIsAskedForInHalvesAndThenCounted() {
    var policy = PushPolicy()
    do {
      let reaction = policy.react(to: failure(.tooLarge), count: 9, isGroup: false, bytes: 1000)
      #expect(reaction == .resend)
    }
    #expect(policy.slice == 4 && policy.bytes == nil)
    do {
      let reaction = policy.react(to: failure(.tooLarge), count: 1, isGroup: false, bytes: 1000)
      #expect(reaction == .count)
    }
  }

  @Test(arguments: [RemoteFailure.Kind.unreachable, .unauthorized, .answered, .malformed, .noSession])
  func whatIsNotTheWritesFaultCountsForNothing(kind: RemoteFailure.Kind) {
    var policy = PushPolicy()
    do {
      let reaction = policy.react(to: failure(kind), count: 9, isGroup: false, bytes: 1000)
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
