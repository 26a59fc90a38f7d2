import Testing

@testable import SupabaseRealtime

@Suite struct MessageAssemblerTests {
  private func add(
    _ assembler: inout MessageAssembler, _ piece: [UInt8], first: Bool = false, last: Bool = false, binary: Bool = false
  ) -> MessageAssembler.Output? {
    piece.withUnsafeBytes { assembler.add($0, isFirst: first, isLast: last, isBinary: binary) }
  }

  /// Every way to cut a message into three pieces gives the message.
  @Test func piecesGiveTheMessage() {
    let text = Array("a–ü🎌".utf8)
    var assembler = MessageAssembler(limit: text.count)
    for first in 0...text.count {
      for second in first...text.count {
        #expect(add(&assembler, Array(text[..<first]), first: true) == nil)
        #expect(add(&assembler, Array(text[first..<second])) == nil)
        #expect(add(&assembler, Array(text[second...]), last: true) == .message(.text("a–ü🎌")))
      }
    }
  }

  @Test func aMessageOverTheLimitIsCountedToItsEnd() {
    var assembler = MessageAssembler(limit: 3)
    #expect(add(&assembler, [1, 2], first: true, binary: true) == nil)
    #expect(add(&assembler, [3, 4], binary: true) == nil)
    #expect(add(&assembler, [5], last: true, binary: true) == .tooLarge(bytes: 5))
    #expect(add(&assembler, [1, 2, 3], first: true, last: true, binary: true) == .message(.binary([1, 2, 3])))
    #expect(add(&assembler, [1, 2, 3, 4], first: true, last: true, binary: true) == .tooLarge(bytes: 4))
  }

  @Test func anUnfinishedMessageIsForgottenWhenTheNextBegins() {
    var assembler = MessageAssembler(limit: 10)
    #expect(add(&assembler, [65], first: true) == nil)
    #expect(add(&assembler, [66], first: true, last: true) == .message(.text("B")))
  }

  @Test func invalidTextIsRepaired() {
    var assembler = MessageAssembler(limit: 10)
    #expect(add(&assembler, [65, 0xFF], first: true, last: true) == .message(.text("A\u{FFFD}")))
  }
}
