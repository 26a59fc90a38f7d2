#if Postgres
  import HostKit
  import PostgresTestSupport
  import Testing

  /// The random programs of `ConvergenceProgramTests` on the server pack in a real PostgreSQL, with changes of policy and
  /// with SQL sessions whose transactions stay open while clients sync, and commit or roll back late. Nobody who follows
  /// the feed ever lacks a committed change; requests that wait for such a session are let through or cancelled.
  ///
  /// `KIZUNA_POSTGRES_PROGRAMS` says how many, `KIZUNA_SEED` from which seed on; see `ConvergenceRunner`.
  @Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
  struct PostgresConvergenceTests {
    static let programs = ProgramCount.of("KIZUNA_POSTGRES_PROGRAMS", otherwise: 9)
    /// Programs that run at the same time.
    static let lanes = 3

    private static func runner(
      _ seed: UInt64, change: String = "", isStepwise: Bool = true
    ) -> ConvergenceRunner {
      let places = ConvergenceProgram.Place.allCases
      return ConvergenceRunner(place: places[Int(seed % UInt64(places.count))], disturbances: 50) {
        try await PostgresServer.start(change, isStepwise: isStepwise)
      }
    }

    @Test func clientsAndServerConverge() async throws {
      let seen = try await withThrowingTaskGroup(of: Set<String>.self) { group in
        for lane in 0..<Self.lanes {
          group.addTask {
            var seen: Set<String> = []
            for number in stride(from: lane, to: Self.programs, by: Self.lanes) {
              let seed = ProgramCount.firstSeed + UInt64(number)
              seen.formUnion(try await Self.runner(seed).check(seed: seed))
            }
            return seen
          }
        }
        return try await group.reduce(into: Set<String>()) { $0.formUnion($1) }
      }
      // Enough of them reach what they are there for.
      guard Self.programs >= 9 else { return }
      #expect(
        seen.isSuperset(of: [
          "a request waited for a commit", "a request waited for a rollback", "a request was cancelled",
          "a transaction outlived requests", "a policy was changed", "CHECKPOINT_EXPIRED", "applied", "DELETE_WINS",
          "RLS_DENIED", "CONSTRAINT",
        ]), "\(seen.sorted())")
    }

    /// Nobody waits for anybody else to finish a step: what happens is different each time.
    @Test(arguments: 0..<max(1, programs / 9))
    func clientsAndSessionsConvergeAllAtOnce(number: Int) async throws {
      let seed = ProgramCount.firstSeed + UInt64(number)
      let problem = try await Self.runner(seed, isStepwise: false).with { program in
        try await program.runAtOnce(ConvergenceProgram.steps(seed: seed)) { world in
          try await (world.server as? PostgresServer)?.writeAtOnce(seed: seed, in: world)
        }
      }
      if let problem { Issue.record("seed \(seed): \(problem)") }
    }

    /// The programs see what they are there to see: a server whose numbers are older than the commit loses changes.
    @Test func aServerThatNumbersChangesBeforeTheCommitIsFoundOut() async throws {
      for seed in 1...20 as ClosedRange<UInt64> {
        let steps = ConvergenceProgram.steps(seed: seed, disturbances: 50)
        let problem = try await Self.runner(seed, change: Self.numbersEarly).run(steps)
        if problem?.hasPrefix("who follows the feed") == true { return }
      }
      Issue.record("no program has noticed")
    }

    private static let numbersEarly = """
      do $$
      declare
        text text := pg_get_functiondef('kizunasync.stamp()'::regprocedure);
      begin
        if text not like '%nextval(''kizunasync.seq'') as seq%' then raise exception 'stamp() has changed'; end if;
        execute replace(text, 'nextval(''kizunasync.seq'') as seq', 'o.n as seq');
      end $$;
      """
  }
#endif
