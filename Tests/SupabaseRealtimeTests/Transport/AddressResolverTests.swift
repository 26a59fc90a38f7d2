import HostKit
import Testing

@testable import SupabaseRealtime

@Suite struct AddressResolverTests {
  private typealias Address = AddressResolver.Address

  private static func addresses(_ texts: String...) -> [AddressResolver.Address] {
    texts.map { AddressResolver.Address(text: $0, isIPv6: $0.contains(":")) }
  }

  @Test func familiesTakeTurnsFromThePreferredOneOn() {
    #expect(
      AddressResolver.interleaved(Self.addresses("::1", "::2", "::3", "1.1.1.1", "2.2.2.2"))
        == Self.addresses("::1", "1.1.1.1", "::2", "2.2.2.2", "::3"))
    #expect(
      AddressResolver.interleaved(Self.addresses("1.1.1.1", "::1", "2.2.2.2"))
        == Self.addresses("1.1.1.1", "::1", "2.2.2.2"))
    #expect(AddressResolver.interleaved([]) == [])
  }

  @Test func literalsAreRecognised() {
    #expect(AddressResolver.literal("127.0.0.1") == Self.addresses("127.0.0.1").first)
    #expect(AddressResolver.literal("fe80::1") == Self.addresses("fe80::1").first)
    for name in ["localhost", "1.2.3", "", "1.2.3.4.5", "::g"] { #expect(AddressResolver.literal(name) == nil) }
  }

  @Test func aNameOfThisMachineIsResolvedAndReached() {
    let server = RawServer { $0.drain() }
    guard case .success(let addresses) = AddressResolver.addresses(of: "localhost") else {
      Issue.record("not resolved")
      return
    }
    let race = ConnectRace(
      headStart: .milliseconds(20), addresses: AddressResolver.interleaved(addresses), port: server.port,
      deadline: SystemClock.monotonic + .seconds(10))
    #expect(race.run(host: "localhost") == .success(Self.addresses("127.0.0.1")[0]))
  }

  @Test func aNameThatDoesNotExistIsUnresolved() {
    guard case .failure(let failure) = AddressResolver.addresses(of: "does-not-exist.invalid") else {
      Issue.record("resolved")
      return
    }
    #expect(failure.kind == .unresolved)
    #expect(failure.message.contains("does-not-exist.invalid"))
  }
}

@Suite struct AddressMemoryTests {
  @Test func anAddressIsRememberedForAWhile() {
    let address = AddressResolver.Address(text: "1.1.1.1", isIPv6: false)
    var memory = AddressMemory()
    memory.remember(address, for: "a:443", until: .seconds(600))
    #expect(memory.address(for: "a:443", now: .seconds(599)) == address)
    #expect(memory.address(for: "b:443", now: 0) == nil)
    #expect(memory.address(for: "a:443", now: .seconds(600)) == nil)
    memory.remember(address, for: "a:443", until: .seconds(1_300))
    memory.forget("a:443")
    #expect(memory.address(for: "a:443", now: .seconds(701)) == nil)
  }
}
