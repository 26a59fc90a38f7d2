import Foundation
import HostKit
import Testing

@testable import KizunaSync

/// Random programs of three clients, two of them of one user, on one server: plain SQL beside each client at every moment,
/// also while a request is under way, library writes, deletes, keys used again, rows that move to another bucket or are
/// hidden from their reader, other devices, lost requests and answers, requests that arrive twice, small pages, forgotten
/// checkpoints, resets, changed buckets, retried refusals, restarts. At the end every client shows what the server shows
/// its user, nothing is left over, and every write that was not wiped has a verdict.
///
/// `KIZUNA_CONVERGENCE_PROGRAMS` says how many, `KIZUNA_SEED` from which seed on. A program that fails is made small and
/// printed; `KIZUNA_STEPS` (numbers with commas) runs only these steps of the seed.
@Suite struct ConvergenceProgramTests {
  static let programs = ProgramCount.of("KIZUNA_CONVERGENCE_PROGRAMS", otherwise: 30)

  enum Place: String, Sendable, CaseIterable {
    case memory, disk
    /// On disk, in a table the app declared.
    case appTable
  }

  @Test(arguments: Place.allCases)
  func clientsAndServerConverge(place: Place) async throws {
    let first = ProgramCount.firstSeed
    // Files and restarts cost more than memory.
    for seed in first..<(first + UInt64(place == .memory ? Self.programs : max(1, Self.programs / 3))) {
      var steps = ConvergenceProgram.steps(seed: seed)
      if let chosen = Self.chosenSteps { steps = chosen.filter(steps.indices.contains).map { steps[$0] } }
      guard let problem = try await run(steps, place) else { continue }
      print("seed \(seed), \(place), fails: \(problem.prefix { !$0.isNewline }); it is being made small")
      let small = try await shrink(steps, place)
      let last = try await run(small, place) ?? problem
      Issue.record(
        """
        seed \(seed), \(place), steps \(small.map { String($0.number) }.joined(separator: ",")):
        \(small.map(\.description).joined(separator: "\n"))
        \(last)
        """)
    }
  }

  private static var chosenSteps: [Int]? {
    ProcessInfo.processInfo.environment["KIZUNA_STEPS"].map { $0.split(separator: ",").compactMap { Int($0) } }
  }

  /// - Returns: what went wrong, with what happened before.
  private func run(_ steps: [ConvergenceProgram.Step], _ place: Place) async throws -> String? {
    try await withScratchFolder { folder in
      let program = try await ConvergenceProgram(
        folder: place == .memory ? nil : folder, inAppTable: place == .appTable)
      let problem = try await program.run(steps)
      await program.close()
      return problem.map { "\($0)\n\(program.log)" }
    }
  }

  /// Leaves steps out, many at first, as long as what is left still fails.
  private func shrink(_ steps: [ConvergenceProgram.Step], _ place: Place) async throws -> [ConvergenceProgram.Step] {
    var small = steps
    var size = max(1, small.count / 2)
    // Enough for most; what a program needs to fail is also in its log.
    var triesLeft = 150
    while true {
      var start = 0
      var isSmaller = false
      while start < small.count {
        var fewer = small
        fewer.removeSubrange(start..<min(start + size, small.count))
        triesLeft -= 1
        if triesLeft < 0 { return small }
        if try await run(fewer, place) != nil {
          small = fewer
          isSmaller = true
        } else {
          start += size
        }
      }
      if size == 1, !isSmaller { return small }
      size = max(1, size / 2)
    }
  }
}
