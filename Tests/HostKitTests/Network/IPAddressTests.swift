import HostKit
import Testing

@Suite struct IPAddressTests {
  @Test(arguments: [
    "", "localhost", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.4 ", "::g", ":::", "1::2::3",
  ])
  func whatIsNoAddressIsRefused(text: String) {
    #expect(IPAddress(text) == nil)
  }

  @Test func mappedAddressesAreIPv4() throws {
    #expect(IPAddress("::ffff:10.1.2.3") == IPAddress("10.1.2.3"))
    #expect(try #require(IPAddress("::ffff:10.1.2.3")).isIPv4)
    #expect(IPAddress("::10.1.2.3") != IPAddress("10.1.2.3"))
  }

  @Test func theInterfaceIsIgnored() {
    #expect(IPAddress("fe80::1%eth0") == IPAddress("fe80::1"))
  }

  @Test(arguments: [
    ("10.1.2.3", "10.0.0.0", 8, true), ("11.1.2.3", "10.0.0.0", 8, false), ("10.1.2.3", "0.0.0.0", 0, true),
    ("10.1.2.3", "10.1.2.3", 32, true), ("10.1.2.4", "10.1.2.3", 32, false), ("10.1.127.1", "10.1.0.0", 17, true),
    ("10.1.128.1", "10.1.0.0", 17, false), ("10.1.2.3", "10.0.0.0", 33, false), ("10.1.2.3", "::", 0, false),
    ("2001:db8::1", "2001:db8::", 32, true), ("2001:db9::1", "2001:db8::", 32, false), ("2001:db8::1", "::", 0, true),
  ]) func networks(address: String, network: String, length: Int, isInside: Bool) throws {
    let address = try #require(IPAddress(address))
    #expect(address.isInside(try #require(IPAddress(network)), length: length) == isInside)
  }
}
