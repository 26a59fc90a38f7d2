import Testing

@testable import SyncServer

@Suite struct SeqLogTests {
  private func entry(_ seq: Int64, _ key: String = "k", _ kind: SeqLog.Kind = .row) -> SeqLog.Entry {
    .init(seq: seq, key: ByteKey(key), kind: kind)
  }

  @Test func findsThePlaceBehindASeq() {
    var log = SeqLog()
    for seq in [2, 4, 6] as [Int64] { log.insert(entry(seq, "\(seq)")) }
    #expect([0, 2, 3, 6, 9].map { log.firstIndex(after: $0) } == [0, 1, 1, 3, 3])
    #expect(log.indices(of: 4) == 1..<2)
    #expect(log.indices(of: 5).isEmpty)
  }

  @Test func anEntryInTheMiddleComesBackOnce() {
    var log = SeqLog()
    log.insert(entry(1, "a"))
    log.insert(entry(2, "b"))
    log.remove(entry(1, "a"))
    log.insert(entry(3, "a"))
    // As when the change at 3 is taken back.
    log.remove(entry(3, "a"))
    log.insert(entry(1, "a"))
    #expect(log.entries.map(\.seq) == [1, 2])
    log.compact { _ in false }
    #expect(log.entries.count == 2, "nothing is overtaken")
  }

  @Test func overtakenEntriesAreDroppedWhenTheyAreMost() {
    var log = SeqLog()
    for seq in 1...3000 as ClosedRange<Int64> { log.insert(entry(seq, "\(seq)")) }
    for seq in 1...1500 as ClosedRange<Int64> { log.remove(entry(seq, "\(seq)")) }
    log.compact { $0.seq > 1500 }
    #expect(log.entries.count == 3000, "half of them is not most")
    log.remove(entry(1501, "1501"))
    log.compact { $0.seq > 1501 }
    #expect(log.entries.map(\.seq) == Array(1502...3000))
  }
}
