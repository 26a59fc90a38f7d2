import HostKit
import KizunaDoorbell
import ServerPack

/// `provision`: the SQL that makes a database a server for the tables of the configuration.
enum ProvisionVerb {
  static let command = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell provision",
      summary: "Prints the SQL that prepares a PostgreSQL for the configured tables, or applies or checks it.",
      options: [
        .value("config", "FILE", "the configuration, of which only the tables are read; --remove needs none"),
        .value(
          "database-url", "URL",
          "apply it to postgresql://user:password@host/database; env:NAME takes the address from a variable, where other users cannot see it"
        ),
        .flag("check", "change nothing; tell in what the database differs, with exit code 3 when it does"),
        .flag("remove", "print or apply the SQL that removes everything again; the tables themselves stay"),
      ] + LogOutput.options), run: run)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let log = BenchVerb.log(arguments, otherwise: .warning)
    if arguments.flag("remove") { return try await remove(arguments, log) }
    let plan = ProvisionPlan(tables: try GatewayConfiguration.loadTables(file: arguments.required("config")))
    guard let address = arguments.value("database-url") else {
      if arguments.flag("check") { throw UsageError("--check needs a database: --database-url URL") }
      StandardStreams.print(plan.script)
      return .ok
    }
    let psql = try Psql(try database(address))
    guard arguments.flag("check") else {
      for line in try await psql.run(plan.script, log: log) { StandardStreams.print(line) }
      return .ok
    }
    let differences = try await psql.run(plan.check, log: log)
    for line in differences { StandardStreams.print(line) }
    if differences.isEmpty { StandardStreams.print("the database is as provisioned") }
    return differences.isEmpty ? .ok : .workLeft
  }

  private static func remove(_ arguments: Arguments, _ log: HostLog) async throws -> ExitCode {
    if arguments.flag("check") { throw UsageError("--check and --remove do not go together; keep one") }
    let script = "begin;\n\n\(ServerPack.deprovision)\ncommit;\n"
    guard let address = arguments.value("database-url") else {
      StandardStreams.print(script)
      return .ok
    }
    _ = try await Psql(try database(address)).run(script, log: log)
    StandardStreams.print("the server pack is removed")
    return .ok
  }

  private static func database(_ address: String) throws -> DatabaseURL {
    var text = address
    if address.hasPrefix("env:") {
      let name = String(address.dropFirst(4))
      guard let value = ProcessEnvironment.variables[name], !value.isEmpty else {
        throw CommandFailure(.configuration, "--database-url names a variable that is not set: \(name)")
      }
      text = value
    }
    do { return try DatabaseURL(text) } catch { throw CommandFailure(.usage, "--database-url: \(error.message)") }
  }
}
