import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

@Suite struct TokenSubjectTests {
  @Test func theSubjectIsRead() {
    for subject in ["a", "ab", "abc", "abcd", "ü€😀"] {
      #expect(TokenSubject.read(TestToken.user(subject)) == subject)
    }
  }

  @Test(arguments: ["", "abc", "a.b.c", "a.e30.c", "a.eyJzdWIiOiIifQ.c", "a.!!!.c", "a..c"])
  func otherTextHasNone(token: String) {
    #expect(TokenSubject.read(token) == nil)
  }
}
