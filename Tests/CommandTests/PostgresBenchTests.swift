#if Postgres
  import HostKit
  import PostgresTestSupport
  import Testing

  @Suite(.enabled(if: PostgresInstallation.isPresent), .timeLimit(.minutes(5)))
  struct PostgresBenchTests {
    @Test func measuresRingsOfAnSQLSession() async throws {
      try await PostgresCluster.shared.withDatabase { database in
        let ending = try await Binaries.doorbell("bench", "--postgres", database.url(), "--rings", "3", "--json")
        #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
        let report = try JSONValue(parsing: ending.output.joined())
        #expect(report["rings"] == 3)
        for stage in ["trigger", "broadcast", "wake", "request", "answer", "commit", "total", "from_commit"] {
          #expect((report["latency_ms"]?[stage]?["p50"]?.numberValue?.double ?? 0) > 0, "\(stage)")
        }
        // The table is gone, and nothing of it is left in the log.
        #expect(try await database.run("select to_regclass('public.bench') is null") == ["t"])
        #expect(try await database.run("select count(*) from kizunasync.tables") == ["0"])
      }
    }

    @Test func aTableOfThatNameIsLeftAlone() async throws {
      try await PostgresCluster.shared.withDatabase { database in
        try await database.run("create table public.bench (kept text)")
        let ending = try await Binaries.doorbell("bench", "--postgres", database.url(), "--rings", "1")
        #expect(ending.code == ExitCode.failure.rawValue)
        #expect(ending.errors.last?.contains("bench") == true, "\(ending.errors)")
        #expect(try await database.run("select count(kept) from public.bench") == ["0"])
      }
    }
  }
#endif
