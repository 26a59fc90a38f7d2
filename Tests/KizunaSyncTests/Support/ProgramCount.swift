import Foundation

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
