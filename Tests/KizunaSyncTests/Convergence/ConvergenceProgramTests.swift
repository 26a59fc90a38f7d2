import HostKit
import Testing

/// Random programs of three clients, two of them of one user, on one server: plain SQL beside each client at every moment,
/// also while a request is under way, library writes, deletes, keys used again, rows that move to another bucket or are
/// hidden from their reader, other devices, lost requests and answers, requests that arrive twice, small pages, forgotten
/// checkpoints, resets, changed buckets, retried refusals, restarts. At the end every client shows what the server shows
/// its user, nothing is left over, every write that was not wiped has a verdict, and every increment counts once.
///
/// `KIZUNA_CONVERGENCE_PROGRAMS` says how many, `KIZUNA_SEED` from which seed on.
@Suite struct ConvergenceProgramTests {
  static let programs = ProgramCount.of("KIZUNA_CONVERGENCE_PROGRAMS", otherwise: 30)

  @Test(arguments: ConvergenceProgram.Place.allCases)
  func clientsAndServerConverge(place: ConvergenceProgram.Place) async throws {
    let runner = ConvergenceRunner(place: place) { ModelServer() }
    let first = ProgramCount.firstSeed
    // Files and restarts cost more than memory.
    for seed in first..<(first + UInt64(place == .memory ? Self.programs : max(1, Self.programs / 3))) {
      try await runner.check(seed: seed)
    }
  }
}
