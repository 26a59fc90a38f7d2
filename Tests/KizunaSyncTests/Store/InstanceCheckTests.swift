import Testing

@testable import KizunaSync

@Suite struct InstanceCheckTests {
  private let known = InstanceCheck(machine: "m", instance: "i2", former: "i1")

  @Test func theNameBesideTheFileDecides() {
    #expect(known.verdict(machine: "m", beside: "i2") == .same)
    // The renewal before this start was cut short between the two files.
    #expect(known.verdict(machine: "m", beside: "i1") == .same)
    #expect(known.verdict(machine: "m", beside: "i9") == .restored)
    #expect(known.verdict(machine: "m", beside: nil) == .unknownHere)
  }

  @Test func anotherHostIsSeenFirst() {
    #expect(known.verdict(machine: "other", beside: "i2") == .fromAnotherHost)
    #expect(known.verdict(machine: "other", beside: nil) == .fromAnotherHost)
    #expect(InstanceCheck(machine: "m").verdict(machine: "other", beside: nil) == .fromAnotherHost)
  }

  @Test func aHostWithoutAnIdentityIsNoOtherOne() {
    #expect(known.verdict(machine: nil, beside: "i2") == .same)
    #expect(InstanceCheck(instance: "i2").verdict(machine: "m", beside: "i2") == .same)
  }

  @Test func aFileNobodyNamedIsNew() {
    #expect(InstanceCheck().verdict(machine: "m", beside: nil) == .new)
    // The file that was here before is gone, and its name is left.
    #expect(InstanceCheck().verdict(machine: "m", beside: "i9") == .new)
    #expect(InstanceCheck(machine: "m").verdict(machine: "m", beside: "i9") == .new)
  }
}
