import Glibc
import HostKit
import LocalStack
import PostgresStack
import SyncServer

/// `kizuna-localstack`: the development server in a process of its own.
enum LocalStackCommand {
  static let specification = CommandSpecification(
    invocation: "kizuna-localstack",
    summary:
      "Serves sync, sign-in and Realtime for development, and prints where as one line of JSON when it is ready.",
    options: [
      .value("host", "HOST", "address to listen on; default 127.0.0.1"),
      .value("port", "PORT", "port to listen on; 0, the default, lets the system choose"),
      .value("directory", "DIR", "keep the state there; without it everything is gone at the end"),
      .value("table", "NAME[:OWNERCOLUMN]", "a table, and the column with its owner's user id", repeatable: true),
      .value("user", "EMAIL:PASSWORD", "somebody who can sign in", repeatable: true),
      .value("jwt-secret", "SECRET", "sign tokens with this; by default a random one, kept in the directory"),
      .value(
        "postgres", "URL",
        "serve this PostgreSQL database instead of the embedded server: postgresql://user:password@host/database; "
          + "env:NAME takes the address from a variable, where other users cannot see it"),
      .flag("no-scaffolding", "with --postgres: leave schemas and roles of the database as they are"),
      .value("config", "FILE", "read tables, users and the rest from a file"),
      .value("tls-cert", "FILE", "serve https and wss with this certificate chain (PEM)"),
      .value("tls-key", "FILE", "the key of that certificate (PEM)"),
    ] + LogOutput.options)

  static func run(_ arguments: Arguments, _ signals: StopSignal) async throws -> ExitCode {
    let settings = try StackSettings(arguments)
    let log = LogOutput.log(from: arguments)
    var options = LocalStack.Options()
    options.host = settings.host
    options.port = settings.port
    options.tls = settings.tls
    options.log = log
    if let url = settings.postgres {
      return try await servePostgres(
        url, settings, options, scaffolds: !arguments.flag("no-scaffolding"), signals)
    }
    let stack = try await LocalStack.start(settings.configuration, options: options)
    ready(url: stack.url, key: stack.publishableKey, secret: stack.jwtSecret, users: stack.users)
    await signals.wait()
    try await stack.stop()
    return .ok
  }

  private static func servePostgres(
    _ url: String, _ settings: StackSettings, _ options: LocalStack.Options, scaffolds: Bool, _ signals: StopSignal
  ) async throws -> ExitCode {
    #if Postgres
      let address: PostgresAddress
      do throws(PostgresError) {
        address = try PostgresAddress(url)
      } catch {
        throw CommandFailure(.configuration, "the database of --postgres or \"postgres\": \(error.message)")
      }
      var postgres = PostgresStack.Options()
      postgres.server = options
      postgres.appliesScaffolding = scaffolds
      postgres.declarations = settings.declarations
      let stack = try await PostgresStack.start(address, settings.configuration, options: postgres)
      ready(url: stack.url, key: stack.publishableKey, secret: stack.jwtSecret, users: stack.users)
      await signals.wait()
      await stack.stop()
      return .ok
    #else
      throw CommandFailure(
        .usage,
        "this kizuna-localstack was built without PostgreSQL; install libpq-dev and build it with: "
          + "swift build --traits Postgres --product kizuna-localstack")
    #endif
  }

  private static func ready(url: String, key: String, secret: String, users: [StackUser]) {
    let line: JSONValue = [
      "url": .string(url), "publishableKey": .string(key), "jwtSecret": .string(secret),
      "users": .array(users.map { ["id": .string($0.id), "email": .string($0.email)] }),
    ]
    StandardStreams.print(JSONWriter.text(line))
  }

  /// Exit codes and sentences for what the server's libraries throw.
  static func explain(_ error: any Error) -> CommandFailure? {
    #if Postgres
      if let error = error as? PostgresStackError {
        switch error {
        case .unreachable: return CommandFailure(.unreachable, error.description)
        case .column: return CommandFailure(.configuration, error.description)
        case .foreignSchemas, .roles, .preparation: return CommandFailure(.database, error.description)
        }
      }
    #endif
    switch error {
    case let error as StackServerError:
      return switch error {
      case .addressInUse, .cannotListen:
        CommandFailure(.addressInUse, "\(error.description) Choose another --port, or 0 to let the system choose.")
      case .invalidAddress, .certificate: CommandFailure(.configuration, error.description)
      case .library: CommandFailure(.failure, error.description)
      }
    case let error as StateDirectoryError:
      if case .inUse = error { return CommandFailure(.locked, error.description) }
      return CommandFailure(.database, error.description)
    default: return nil
    }
  }
}
