import Foundation

/// A generator whose programs can be made again from the seed (SplitMix64).
struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) {
    // The seed is mixed: neighbouring seeds would otherwise give the same sequence, one number further on.
    state = Self.mixed(seed &+ 0x9E37_79B9_7F4A_7C15)
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return Self.mixed(state)
  }

  private static func mixed(_ value: UInt64) -> UInt64 {
    var z = value
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// A number from 0 up to, not including, `limit`.
  mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &self) }

  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

  mutating func pick<Element>(_ list: [Element]) -> Element { list[below(list.count)] }
}

/// How many generated programs a test runs, and from which seed, by environment variables.
enum ProgramCount {
  static func of(_ variable: String, otherwise count: Int) -> Int {
    ProcessInfo.processInfo.environment[variable].flatMap(Int.init) ?? count
  }

  /// `KIZUNA_SEED`, to run a failed program again.
  static var firstSeed: UInt64 {
    ProcessInfo.processInfo.environment["KIZUNA_SEED"].flatMap(UInt64.init) ?? 1
  }
}
