import Testing

@testable import KizunaSyncTestSupport

@Suite struct FaultPipeTests {
  /// Everything that may be sent at `now`, in pieces of at most `limit`.
  private func take(_ pipe: inout FaultPipe, now: UInt64, limit: Int = .max) -> [[UInt8]] {
    var pieces: [[UInt8]] = []
    while let piece = pipe.next(now: now, limit: limit) {
      pieces.append(Array(piece))
      pipe.sent(piece.count)
    }
    return pieces
  }

  @Test func bytesComeWhenTheyAreDueAndInPieces() {
    var pipe = FaultPipe()
    pipe.add([1, 2, 3], due: 10)
    pipe.add([4], due: 20)
    pipe.add(.fin, due: 30)
    #expect(pipe.nextDue == 10)
    #expect(take(&pipe, now: 9).isEmpty)
    #expect(take(&pipe, now: 19, limit: 2) == [[1, 2], [3]])
    #expect(pipe.nextDue == 20)
    #expect(pipe.takeEnding(now: 40) == nil)
    #expect(take(&pipe, now: 20) == [[4]])
    #expect(pipe.nextDue == 30)
    #expect(pipe.takeEnding(now: 29) == nil)
    #expect(pipe.takeEnding(now: 30) == .fin)
    #expect(pipe.takeEnding(now: 30) == nil)
    #expect(pipe.nextDue == nil)
  }

  @Test func whatIsSwallowedIsALoss() {
    var pipe = FaultPipe()
    #expect(pipe.swallow() == 0)
    #expect(!pipe.hasLoss)
    pipe.add([1, 2], due: 0)
    #expect(pipe.swallow() == 2)
    #expect(pipe.hasLoss)
    #expect(take(&pipe, now: 1).isEmpty)

    var ended = FaultPipe()
    ended.add(.reset, due: 0)
    #expect(ended.swallow() == 0)
    #expect(ended.hasLoss)
    #expect(ended.takeEnding(now: 1) == nil)
  }

  @Test func itIsBounded() {
    var pipe = FaultPipe()
    for _ in 0..<16 { pipe.add([UInt8](repeating: 0, count: 65_536)[...], due: 0) }
    #expect(!pipe.hasRoom)
    pipe.sent(1)
    #expect(pipe.hasRoom)
  }

  @Test func longTrafficKeepsItsOrder() {
    var pipe = FaultPipe()
    var sent: [UInt8] = []
    var got: [UInt8] = []
    for round in 0..<500 {
      let bytes = [UInt8(truncatingIfNeeded: round), UInt8(truncatingIfNeeded: round / 3)]
      sent += bytes
      pipe.add(bytes[...], due: UInt64(round / 100))
      if round % 7 == 0 { got += take(&pipe, now: UInt64(round / 150), limit: 1 + round % 3).flatMap(\.self) }
    }
    got += take(&pipe, now: 1_000).flatMap(\.self)
    #expect(got == sent)
  }
}
