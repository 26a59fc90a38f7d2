import HostKit
import Testing

@Suite struct PercentCodingTests {
  @Test(arguments: [
    ("abc-._~019", "abc-._~019"), ("a b", "a%20b"), ("ü", "%C3%BC"), ("a/b?c=d&e+f", "a%2Fb%3Fc%3Dd%26e%2Bf"),
    ("%", "%25"), ("", ""),
  ]) func thereAndBack(plain: String, coded: String) {
    #expect(PercentCoding.encode(plain) == coded)
    #expect(PercentCoding.decode(coded) == plain)
  }

  @Test(arguments: [("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("%41%", "A%"), ("%c3%bc", "ü"), ("%ff", "\u{FFFD}")])
  func incompleteEscapesStay(coded: String, plain: String) {
    #expect(PercentCoding.decode(coded) == plain)
  }
}
