import Testing

@testable import SyncServer

@Suite struct DecimalTests {
  @Test(arguments: [
    ("1", "2", "3"), ("9", "1", "10"), ("-1", "1", "0"), ("5", "-7", "-2"), ("-5", "7", "2"), ("-5", "-7", "-12"),
    ("0.10", "0.2", "0.30"), ("1", "-0.01", "0.99"), ("9223372036854775807", "1", "9223372036854775808"),
    ("12345678901234567890.123456789", "0.000000001", "12345678901234567890.123456790"), ("1e3", "1", "1001"),
    ("1e-3", "1", "1.001"), ("007", "+1", "8"), ("-0", "0", "0"), ("1000", "-999.5", "0.5"),
  ])
  func sums(left: String, right: String, sum: String) throws {
    let (a, b) = (try #require(Decimal(left)), try #require(Decimal(right)))
    #expect((a + b).description == sum)
    #expect((b + a).description == sum)
  }

  @Test(arguments: ["", "-", ".", "1.2.3", "1e", "1e1.5", "abc", "0x1", "1 ", "1e100000"])
  func refuses(text: String) {
    #expect(Decimal(text) == nil)
  }

  @Test(arguments: [
    ("2147483647", true), ("2147483648", false), ("-2147483647", true), ("-2147483648", false), ("1.5", false),
    ("99999999999999999999", false),
  ])
  func knowsWhatTravelsAsANumber(text: String, below: Bool) {
    #expect(Decimal(text)?.isBelow2To31 == below)
  }
}
