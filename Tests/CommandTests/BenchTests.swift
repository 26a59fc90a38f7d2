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

  @Test func measuresTheFirstPull() async throws {
    let ending = try await Binaries.doorbell("bench", "ingest", "--rows", "1200", "--repeats", "2", "--json")
    if ending.errors.last?.contains("libcjson1") == true {
      // Only this measurement needs cJSON, and says so where it is missing.
      #expect(ending.code == ExitCode.failure.rawValue)
      return
    }
    #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
    let report = try JSONValue(parsing: ending.output.joined())
    #expect(report["rows"] == 1200)
    #expect(report["repeats"] == 2)
    // Pages of 500 rows: both sides went on to the last one.
    #expect(report["pages"] == 3)
    for figure in ["page_bytes", "replica_ms", "floor_ms", "peak_memory_mb", "ratio"] {
      #expect((report[figure]?.numberValue?.double ?? 0) > 0, "\(figure)")
    }
  }

  @Test func measuresCaptureAndPush() async throws {
    let ending = try await Binaries.doorbell(
      "bench", "writes", "--rows", "500", "--queued", "700", "--repeats", "1", "--json")
    #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
    #expect(ending.errors.isEmpty, "\(ending.errors)")
    let report = try JSONValue(parsing: ending.output.joined())
    for (way, rows) in [("statement", 500), ("transaction", 500), ("single", 5)] {
      #expect(report[way]?["rows"] == .int(rows), "\(way)")
      for figure in ["captured_us", "bare_us", "ratio"] {
        #expect((report[way]?[figure]?.numberValue?.double ?? 0) > 0, "\(way) \(figure)")
      }
    }
    #expect(report["push"]?["writes"] == 700)
    #expect(report["push"]?["requests"] == 2)
    for figure in ["queueing_ms", "total_ms", "round_trips_ms", "client_ms", "client_share"] {
      #expect((report["push"]?[figure]?.numberValue?.double ?? 0) > 0, "\(figure)")
    }
    let ratios = ["statement", "single"].compactMap { report[$0]?["ratio"]?.numberValue?.double }
    #expect(report["ratio"]?.numberValue?.double == ratios.min())
  }

  @Test func printsItsFiguresAsText() async throws {
    let ending = try await Binaries.doorbell("bench", "writes", "--rows", "100", "--queued", "10", "--repeats", "1")
    #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
    #expect(ending.output.first?.hasPrefix("inserts, µs a row") == true, "\(ending.output)")
    #expect(ending.output.contains { $0.hasPrefix("push of 10 writes in 1 request: ") })
    #expect(ending.output.last?.hasPrefix("speed of captured inserts ÷ bare ones") == true)
  }
}
