import HostKit

/// How the gateways came back from one outage.
struct StormResult: Sendable {
  let outage: Outage
  let gateways: Int
  /// When the gateways reached the server that is there again, nanoseconds after its return, sorted.
  let arrivals: [UInt64]
  /// Attempts in vain, of all gateways.
  let attemptsInVain: Int
  /// Until the last gateway had its topic again, nanoseconds after the return.
  let lastBack: UInt64
  /// Arrivals in a bin if the gateways came evenly spread over the longest delay.
  let mean: Double
  /// Most arrivals in a bin, wherever it begins.
  let peak: Int

  init(_ histories: [StormGateway.History], _ outage: Outage, cap: UInt64) {
    self.outage = outage
    gateways = histories.count
    let all = histories.flatMap(\.arrivals)
    arrivals = all.filter { $0 >= outage.end }.map { $0 - outage.end }.sorted()
    attemptsInVain = all.count - arrivals.count
    lastBack = (histories.map(\.backAt).max() ?? outage.end) - outage.end
    mean = Double(histories.count) * Storm.bin.inSeconds / cap.inSeconds
    peak = Self.peak(arrivals)
  }

  /// What the server has to bear, as a multiple of the least possible.
  var peakToMean: Double { Double(peak) / mean }

  var attemptsInVainEach: Double { Double(attemptsInVain) / Double(max(1, gateways)) }

  /// Arrivals from `start` on for the length of a bin.
  func arrivals(from start: UInt64) -> Int {
    Self.firstIndex(arrivals, notBefore: start + Storm.bin) - Self.firstIndex(arrivals, notBefore: start)
  }

  /// The fullest bin begins with an arrival.
  private static func peak(_ arrivals: [UInt64]) -> Int {
    var end = 0
    var peak = 0
    for (start, time) in arrivals.enumerated() {
      while end < arrivals.count, arrivals[end] < time + Storm.bin { end += 1 }
      peak = max(peak, end - start)
    }
    return peak
  }

  private static func firstIndex(_ arrivals: [UInt64], notBefore time: UInt64) -> Int {
    var range = 0..<arrivals.count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      range = arrivals[middle] < time ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return range.lowerBound
  }
}
