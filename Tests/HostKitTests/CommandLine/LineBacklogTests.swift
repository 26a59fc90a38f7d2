import Testing

@testable import HostKit

@Suite struct LineBacklogTests {
  private func event(_ text: String) -> LineBacklog.Line {
    LineBacklog.Line(text: text) { "-\($0) up to \(text)" }
  }

  private func result(_ text: String) -> LineBacklog.Line { LineBacklog.Line(text: text, notice: nil) }

  private func taken(_ backlog: inout LineBacklog) -> [String] {
    var texts: [String] = []
    while let line = backlog.next() { texts.append(line.text) }
    return texts
  }

  @Test func theOldestEventsMakeRoom() {
    var backlog = LineBacklog(limits: .init(lines: 3))
    for text in ["a", "b", "c", "d", "e"] { backlog.append(event(text)) }
    #expect(taken(&backlog) == ["-2 up to b", "c", "d", "e"])
    #expect(backlog.isEmpty)
  }

  @Test func bytesAreBoundedToo() {
    var backlog = LineBacklog(limits: .init(bytes: 10))
    for text in ["aaaa", "bbbb", "cccc"] { backlog.append(event(text)) }
    #expect(taken(&backlog) == ["-1 up to aaaa", "bbbb", "cccc"])
    // The newest is there however long it is.
    for text in ["a", "b", String(repeating: "c", count: 20)] { backlog.append(event(text)) }
    #expect(taken(&backlog) == ["-2 up to b", String(repeating: "c", count: 20)])
  }

  @Test func resultsStay() {
    var backlog = LineBacklog(limits: .init(lines: 1))
    for line in [result("a"), event("b"), result("c"), event("d"), result("e")] { backlog.append(line) }
    #expect(backlog.holdsResults)
    #expect(taken(&backlog) == ["-1 up to b", "a", "c", "d", "e"])
    #expect(!backlog.holdsResults)
  }

  /// Whatever comes and goes: everything is written in order or counted, and no more waits than may.
  @Test(arguments: 0..<100 as Range<UInt64>)
  func everyLineIsWrittenOrCounted(seed: UInt64) {
    var random = SeededRandom(seed)
    let limits = LineBacklog.Limits(bytes: 40 + random.below(2000), lines: 1 + random.below(1500))
    var backlog = LineBacklog(limits: limits)
    let hasResults = random.chance(20)
    let share = 20 + random.below(60)
    var (added, written, dropped) = (0, 0, 0)
    var last = -1
    var isOrdered = true
    func take() -> Bool {
      guard let line = backlog.next() else { return false }
      if line.text.hasPrefix("-") {
        dropped += Int(line.text.dropFirst().prefix { $0 != " " }) ?? 0
      } else {
        let index = Int(line.text) ?? -1
        isOrdered = isOrdered && index > last
        last = index
        written += 1
      }
      return true
    }
    for _ in 0..<3000 {
      if random.chance(share) {
        _ = take()
      } else {
        let text = "\(added)"
        backlog.append(hasResults && random.chance(10) ? result(text) : event(text))
        added += 1
      }
    }
    let before = written
    while take() {}
    #expect(isOrdered)
    #expect(written + dropped == added)
    if !hasResults { #expect(written - before <= limits.lines) }
    #expect(backlog.isEmpty && !backlog.holdsResults)
  }
}
