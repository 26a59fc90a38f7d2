import HostKit
import KizunaDoorbell

/// `bench`: how long a ring takes to become a row, beside the least it could take, both in one run.
enum BenchVerb {
  static let command = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell bench",
      summary: "Measures how long a ring takes to become a row, stage by stage, beside the least the C libraries need.",
      options: [
        .value(
          "config", "FILE", "measure against this server; a text cell of one row is changed, and put back at the end"),
        .value(
          "postgres", "URL",
          "an SQL session writes to a table \"bench\" of this PostgreSQL, which is provisioned and dropped; "
            + "kizuna-localstack must be built with the trait Postgres"),
        .value("rings", "N", "how many rings; default 200"), .flag("json", "print one JSON object"),
      ] + LogOutput.options), run: run)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let rings = try arguments.integer("rings", in: 1...100_000) ?? 200
    let log = log(arguments)
    let report = try await BenchFolder.with { folder in
      try await bench(arguments, rings: rings, folder: folder.path, log: log)
    }
    StandardStreams.print(arguments.flag("json") ? JSONWriter.text(report.json) : report.text)
    return report.totals.isEmpty ? .failure : .ok
  }

  /// Warnings only, unless more is asked for: what is measured should not be busy writing lines.
  static func log(_ arguments: Arguments, otherwise level: HostLog.Level = .warning) -> HostLog {
    LogOutput.log(
      minimum: arguments.value("log-level").flatMap(HostLog.Level.init) ?? level,
      format: arguments.value("log-format").flatMap(LogOutput.Format.init) ?? .text)
  }

  private static func bench(
    _ arguments: Arguments, rings: Int, folder: String, log: HostLog
  ) async throws -> BenchReport {
    if arguments.value("config") != nil, arguments.value("postgres") != nil {
      throw UsageError("--config and --postgres are two servers; keep one")
    }
    if arguments.value("config") != nil {
      var configuration = try ConfigurationOption.load(arguments, log: log)
      // A replica of its own: the configured one may be in use, and is no place for measurements.
      configuration.database = folder + "/bench.db"
      return try await Bench(configuration, .configured, folder: folder, log: log).run(rings: rings)
    }
    if let address = arguments.value("postgres") {
      return try await StackChild.with(database: address) { stack in
        let configuration = try stack.configuration(database: folder + "/bench.db")
        return try await BenchSQL.with(address, configuration.tables, folder: folder) { session in
          try await Bench(configuration, .postgres(session), folder: folder, log: log).run(rings: rings)
        }
      }
    }
    return try await StackChild.with { stack in
      try await Bench(stack.configuration(database: folder + "/bench.db"), .embedded, folder: folder, log: log)
        .run(rings: rings)
    }
  }
}
