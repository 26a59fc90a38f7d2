/// Numbers of the outbox, in runs without a gap: one statement does for a run and touches nothing else. What waits between
/// two runs is held or was sent before, and nobody answered for it.
struct SequenceRuns {
  private(set) var ranges: [ClosedRange<Int64>] = []

  init(_ numbers: [Int64] = []) {
    for number in numbers { add(number) }
  }

  /// - Parameter number: higher than those before.
  mutating func add(_ number: Int64) {
    if let last = ranges.last, last.upperBound + 1 == number {
      ranges[ranges.count - 1] = last.lowerBound...number
    } else {
      ranges.append(number...number)
    }
  }
}
