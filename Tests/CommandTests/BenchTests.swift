import HostKit
import Testing

@Suite struct BenchTests {
  @Test func measuresTheEmbeddedServer() async throws {
    let ending = try await Binaries.doorbell("bench", "--rings", "3", "--json")
    #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
    let report = try JSONValue(parsing: ending.output.joined())
    #expect(report["rings"] == 3)
    #expect(report["lost"] == 0)
    for stage in ["broadcast", "wake", "request", "answer", "commit", "total"] {
      for percentile in ["p50", "p90", "p99", "max"] {
        #expect((report["latency_ms"]?[stage]?[percentile]?.numberValue?.double ?? 0) > 0, "\(stage) \(percentile)")
      }
    }
    for part in ["websocket", "request", "transaction", "total"] {
      #expect((report["floor_ms"]?[part]?["p50"]?.numberValue?.double ?? 0) > 0, "\(part)")
    }
    #expect((report["ratio"]?.numberValue?.double ?? 0) > 0)
  }

  @Test func measuresAConfiguredServer() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        let empty = try await Binaries.doorbell("bench", "--config", file, "--rings", "1")
        #expect(empty.code == ExitCode.failure.rawValue)
        #expect(empty.errors.last?.contains("insert one first") == true, "\(empty.errors)")

        _ = try await Binaries.doorbell("sync", "--config", file)
        try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('water the plants')")
        _ = try await Binaries.doorbell("sync", "--config", file)
        let ending = try await Binaries.doorbell("bench", "--config", file, "--rings", "3")
        #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
        #expect(ending.output.first?.hasPrefix("milliseconds, 3 rings") == true, "\(ending.output)")
        #expect(ending.output.contains { $0.hasPrefix("write sent → frame received") })
        #expect(ending.output.last?.hasPrefix("total ÷ floor at p50: ") == true)
        // The cell was put back.
        _ = try await Binaries.doorbell("sync", "--config", file)
        #expect(try PlainSQL.run(database, "SELECT title FROM todos") == ["water the plants"])
      }
    }
  }
}
