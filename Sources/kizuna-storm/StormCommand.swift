import HostKit

/// `kizuna-storm`: what a server has to bear when it returns and all gateways come back to it.
enum StormCommand {
  static let specification = CommandSpecification(
    invocation: "kizuna-storm",
    summary: "Simulates gateways that lose one server and get it back; fails when too many return at once.",
    options: [
      .value("gateways", "N", "how many; default 10000"),
      .value("seed", "N", "of the chance in the delays; default 1"),
      .value("svg", "FILE", "draw the returns over time"),
      .flag("json", "print one JSON object"),
    ])

  @Sendable static func run(_ arguments: Arguments) async throws -> ExitCode {
    var storm = Storm()
    if let gateways = try arguments.integer("gateways", in: 1...1_000_000) { storm.gateways = gateways }
    if let seed = try arguments.integer("seed", in: 0...Int.max) { storm.seed = UInt64(seed) }
    var results: [StormResult] = []
    for seconds in StormReport.short + StormReport.limited {
      results.append(try await storm.run(Outage(seconds: seconds)))
    }
    let report = StormReport(storm: storm, results: results)
    if let file = arguments.value("svg") {
      try DurableFile.replace(file, with: Array(StormPlot(report).svg.utf8), mode: 0o644)
    }
    StandardStreams.print(arguments.flag("json") ? JSONWriter.text(report.json) : report.table)
    guard report.isWithinLimit else {
      throw CommandFailure(
        .failure,
        "\(StormReport.number(report.peakToMean)) times the even load, \(StormReport.limit) are allowed; "
          + "the delays of ReconnectPolicy do not spread the gateways enough")
    }
    return .ok
  }
}
