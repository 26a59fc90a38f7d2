import HostKit

/// `bench ingest`: the first pull of many rows beside a bare C loop that does the same.
enum IngestBenchVerb {
  static let command = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell bench ingest",
      summary: "Measures the first pull of many rows beside a bare loop in C (libcurl, cJSON, SQLite).",
      options: [
        .value("rows", "N", "how many rows the server has; default 200000"),
        .value("repeats", "N", "how often each side pulls, in turns; medians are printed; default 3"),
        .flag("json", "print one JSON object"),
      ] + LogOutput.options), run: run)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let rows = try arguments.integer("rows", in: 1...10_000_000) ?? 200_000
    let repeats = try arguments.integer("repeats", in: 1...100) ?? 3
    let log = BenchVerb.log(arguments)
    let report = try await BenchFolder.with { folder in
      try await StackChild.with { stack in
        try await IngestBench(stack, folder: folder, log: log).run(rows: rows, repeats: repeats)
      }
    }
    StandardStreams.print(arguments.flag("json") ? JSONWriter.text(report.json) : report.text)
    return .ok
  }
}
