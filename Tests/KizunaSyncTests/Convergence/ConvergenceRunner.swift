import Foundation
import HostKit
import Testing

/// Runs random programs on servers of one kind. A program that fails is made small and printed; `KIZUNA_STEPS` (numbers
/// with commas) runs only these steps of the seed.
struct ConvergenceRunner: Sendable {
  typealias Step = ConvergenceProgram.Step

  let place: ConvergenceProgram.Place
  /// See `ConvergenceProgram.steps`.
  var disturbances = 0
  let makeServer: @Sendable () async throws -> any ConvergenceServer

  /// - Returns: what the program has reached.
  @discardableResult
  func check(seed: UInt64) async throws -> Set<String> {
    var steps = ConvergenceProgram.steps(seed: seed, disturbances: disturbances)
    if let chosen = Self.chosenSteps { steps = chosen.filter(steps.indices.contains).map { steps[$0] } }
    let seen = Locked<Set<String>>([])
    let whole = try await with { program in
      defer { seen.withLock { $0 = program.seen } }
      return try await program.run(steps)
    }
    guard let problem = whole else { return seen.withLock { $0 } }
    print("seed \(seed), \(place), fails: \(problem.prefix { !$0.isNewline }); it is being made small")
    let small = try await shrink(steps)
    let last = try await run(small) ?? problem
    Issue.record(
      """
      seed \(seed), \(place), steps \(small.map { String($0.number) }.joined(separator: ",")):
      \(small.map(\.description).joined(separator: "\n"))
      \(last)
      """)
    return []
  }

  private static var chosenSteps: [Int]? {
    ProcessInfo.processInfo.environment["KIZUNA_STEPS"].map { $0.split(separator: ",").compactMap { Int($0) } }
  }

  /// - Returns: what went wrong, with what happened before.
  func run(_ steps: [Step]) async throws -> String? {
    try await with { try await $0.run(steps) }
  }

  /// The same for another way to run a program.
  func with(_ body: (ConvergenceProgram) async throws -> String?) async throws -> String? {
    try await withScratchFolder { folder in
      let server = try await makeServer()
      let problem: String?
      do {
        let program = try await ConvergenceProgram(server, folder: folder, place: place)
        problem = try await body(program).map { "\($0)\n\(program.log)" }
        await program.close()
      } catch {
        await server.close()
        throw error
      }
      await server.close()
      return problem
    }
  }

  /// Leaves steps out, many at first, as long as what is left still fails.
  private func shrink(_ steps: [Step]) async throws -> [Step] {
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
        if try await run(fewer) != nil {
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
