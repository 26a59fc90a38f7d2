import HostKit
import KizunaDoorbell

/// `doctor`: looks at everything a gateway needs, and says what to do about what is wrong.
enum DoctorVerb {
  static let command = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell doctor",
      summary:
        "Checks the configuration, the database, the server, the credentials and the doorbell; also beside a run.",
      options: [
        .value(
          "config", "FILE", "what to check; without it this installation is, with a development server of its own"),
        .flag("json", "print one JSON object"),
      ] + LogOutput.options), run: run)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    // What is wrong is in the findings; lines of the log between them would only say it twice.
    let log = BenchVerb.log(arguments, otherwise: .error)
    let report = DoctorReport(isJSON: arguments.flag("json"))
    guard arguments.value("config") != nil else { return try await embedded(report, log) }
    let configuration: GatewayConfiguration
    do {
      let file = try arguments.required("config")
      let (loaded, warnings) = try GatewayConfiguration.load(file: file)
      configuration = loaded
      report.add(ConfigurationVerdict.findings(file: file, warnings: warnings))
    } catch let error as ConfigurationError {
      report.add(ConfigurationVerdict.findings(error))
      return report.end()
    }
    _ = await Doctor(configuration, log: log).examine(report.add)
    return report.end()
  }

  /// Whether everything works on this host at all: a server beside it, a replica that is made and filled, and a ring.
  private static func embedded(_ report: DoctorReport, _ log: HostLog) async throws -> ExitCode {
    try await BenchFolder.with { folder in
      try await StackChild.with { stack in
        let configuration = try stack.configuration(database: folder.path + "/doctor.db")
        report.add(
          .ok(.configuration, "none is given, so this installation is checked with a development server of its own"))
        _ = try await SingleSync.run(configuration, log: log)
        _ = await Doctor(configuration, log: log).examine(report.add)
        return report.end()
      }
    }
  }
}
