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
    var assembler = MessageAssembler(limit: text.count, ceiling: 100)
    for first in 0...text.count {
      for second in first...text.count {
        #expect(add(&assembler, Array(text[..<first]), first: true) == nil)
        #expect(add(&assembler, Array(text[first..<second])) == nil)
        #expect(add(&assembler, Array(text[second...]), last: true) == .message(.text("a–ü🎌")))
      }
    }
  }

  @Test func aMessageOverTheLimitIsCountedToItsEnd() {
    var assembler = MessageAssembler(limit: 3, ceiling: 100)
    #expect(add(&assembler, [1, 2], first: true, binary: true) == nil)
    #expect(add(&assembler, [3, 4], binary: true) == nil)
    #expect(add(&assembler, [5], last: true, binary: true) == .tooLarge(bytes: 5))
    #expect(add(&assembler, [1, 2, 3], first: true, last: true, binary: true) == .message(.binary([1, 2, 3])))
    #expect(add(&assembler, [1, 2, 3, 4], first: true, last: true, binary: true) == .tooLarge(bytes: 4))
  }

  @Test func anUnfinishedMessageIsForgottenWhenTheNextBegins() {
    var assembler = MessageAssembler(limit: 10, ceiling: 100)
    #expect(add(&assembler, [65], first: true) == nil)
    #expect(add(&assembler, [66], first: true, last: true) == .message(.text("B")))
  }

  /// However it is cut: large pieces, single bytes, and empty fragments, which have no bytes to count.
  @Test(arguments: [7, 1, 0])
  func aMessageWithoutAnEndIsGivenUp(pieceBytes: Int) {
    var assembler = MessageAssembler(limit: 10, ceiling: 20)
    let piece = [UInt8](repeating: 65, count: pieceBytes)
    #expect(add(&assembler, piece, first: true) == nil)
    var taken = 1
    while add(&assembler, piece) == nil, taken < 100 { taken += 1 }
    #expect(taken == 20 / max(pieceBytes, 1))
    // Nothing of that connection is taken any more, not even a message that is whole.
    #expect(add(&assembler, piece, last: true) == nil)
    #expect(add(&assembler, [66], first: true, last: true) == nil)
  }

  @Test func theCeilingIsForOneMessage() {
    var assembler = MessageAssembler(limit: 10, ceiling: 20)
    for _ in 0..<10 {
      #expect(add(&assembler, [UInt8](repeating: 65, count: 20), first: true, last: true) == .tooLarge(bytes: 20))
    }
    #expect(add(&assembler, [UInt8](repeating: 65, count: 21), first: true, last: true) == .endless)
  }

  @Test func invalidTextIsRepaired() {
    var assembler = MessageAssembler(limit: 10, ceiling: 100)
    #expect(add(&assembler, [65, 0xFF], first: true, last: true) == .message(.text("A\u{FFFD}")))
  }
}
