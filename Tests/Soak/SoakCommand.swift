import Glibc
import HostKit

/// `kizuna-soak`: randomized faults between gateways, fault proxies and a development server, for as long as wanted.
enum SoakCommand {
  static let specification = CommandSpecification(
    invocation: "kizuna-soak",
    summary:
      "Breaks the network and the server of two gateways at random while rows are written on all sides, and reports how"
      + " they fared. Ends with 1 when something was lost, leaked or did not recover.",
    options: [
      .value("seconds", "N", "how long; default 3600"),
      .value("seed", "N", "the same number gives the same faults; default is taken from the clock"),
      .flag("quick", "shortens heartbeats and delays, for short runs"),
      .flag("json", "prints the report as one JSON object"),
    ])

  static func run(_ arguments: Arguments) async throws -> ExitCode {
    let seconds = try arguments.integer("seconds", in: 1...1_000_000) ?? 3_600
    let seed = try arguments.integer("seed", in: 0...Int.max) ?? Int(SystemClock.shared.wallMilliseconds)
    var template = Array("/tmp/kizuna-soak-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw HostFileError(path: "/tmp", code: errno) }
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let soak = try await Soak.start(folder: folder, seed: UInt64(seed), isQuick: arguments.flag("quick"))
    let report = await soak.run(seconds: seconds)
    _ = await (try ChildProcess(executable: "/bin/rm", arguments: ["-rf", folder])).ending()
    if arguments.flag("json") {
      StandardStreams.print(JSONWriter.text(report.json))
      StandardStreams.printError(report.text)
    } else {
      StandardStreams.print(report.text)
    }
    return report.problems.isEmpty ? .ok : .failure
  }
}
