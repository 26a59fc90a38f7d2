import Glibc
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
        .value("rings", "N", "how many rings; default 200"), .flag("json", "print one JSON object"),
      ] + LogOutput.options), run: run)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let rings = try arguments.integer("rings", in: 1...100_000) ?? 200
    let log = LogOutput.log(
      minimum: arguments.value("log-level").flatMap(HostLog.Level.init) ?? .warning,
      format: arguments.value("log-format").flatMap(LogOutput.Format.init) ?? .text)
    let folder = try temporaryFolder()
    let report: BenchReport
    do {
      report = try await bench(arguments, rings: rings, folder: folder, log: log)
      remove(folder)
    } catch {
      remove(folder)
      throw error
    }
    StandardStreams.print(arguments.flag("json") ? JSONWriter.text(report.json) : report.text)
    return report.totals.isEmpty ? .failure : .ok
  }

  private static func bench(
    _ arguments: Arguments, rings: Int, folder: String, log: HostLog
  ) async throws -> BenchReport {
    if arguments.value("config") != nil {
      var configuration = try ConfigurationOption.load(arguments, log: log)
      // A replica of its own: the configured one may be in use, and is no place for measurements.
      configuration.database = folder + "/bench.db"
      return try await Bench(configuration, isEmbedded: false, folder: folder, log: log).run(rings: rings)
    }
    let stack = try await StackChild.start()
    ProcessSignals.shared.onStop {
      stack.process.send(signal: SIGTERM)
      remove(folder)
      exit(ExitCode.interrupted.rawValue)
    }
    do {
      let configuration = GatewayConfiguration(
        url: try ServerURL(stack.url), publishableKey: ConfigurationSecret(literal: stack.publishableKey),
        database: folder + "/bench.db",
        tables: [
          "bench": TableDeclaration(bucket: .owner(column: "owner_id"), columns: ["title": .text, "n": .number])
        ],
        session: .password(email: StackChild.email, password: ConfigurationSecret(literal: StackChild.password)))
      let report = try await Bench(configuration, isEmbedded: true, folder: folder, log: log).run(rings: rings)
      await stack.process.stop()
      return report
    } catch {
      await stack.process.stop()
      throw error
    }
  }

  private static func temporaryFolder() throws -> String {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/kizuna-bench-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw CommandFailure(.database, "no folder can be made in \(parent): \(String(cString: strerror(errno)))")
    }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func remove(_ folder: String) {
    guard let entries = opendir(folder) else { return }
    while let entry = readdir(entries) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != ".", name != ".." { unlink(folder + "/" + name) }
    }
    closedir(entries)
    rmdir(folder)
  }
}
