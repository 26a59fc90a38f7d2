import Glibc
import HostKit
import ServerPack

/// Runs scripts with PostgreSQL's own client, as a child process.
struct Psql {
  let executable: String
  let database: DatabaseURL

  /// - Throws: `CommandFailure` when `psql` is not installed.
  init(_ database: DatabaseURL) throws {
    guard let executable = Self.find() else {
      throw CommandFailure(
        .failure, "psql is not installed; install PostgreSQL's client (Debian: apt-get install postgresql-client)")
    }
    self.executable = executable
    self.database = database
  }

  /// Runs a script up to its first error. What the server warns of goes to the log.
  ///
  /// - Returns: the result rows, one line each.
  /// - Throws: `CommandFailure` with what the server said.
  func run(_ script: String, log: HostLog = .none) async throws -> [String] {
    let file = try Self.write(script)
    defer { unlink(file) }
    let process = try ChildProcess(
      executable: executable,
      arguments: [
        "--no-psqlrc", "--no-password", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1",
        "--set=VERBOSITY=verbose", "--file=\(file)",
      ],
      // Nothing the address says may be seen by other users, as arguments are.
      environment: ["PGAPPNAME": "kizuna-doorbell provision"].merging(database.environment) { $1 })
    // Left alone it would do its work later, when nobody expects it any more.
    let isStopped = Locked(false)
    ProcessSignals.shared.onStop {
      isStopped.withLock { $0 = true }
      process.send(signal: SIGINT)
    }
    let ending = await withTaskCancellationHandler {
      await process.ending()
    } onCancel: {
      process.send(signal: SIGINT)
    }
    try Task.checkCancellation()
    if ending.code != 0, isStopped.withLock({ $0 }) {
      throw CommandFailure(.interrupted, "stopped; nothing was changed")
    }
    for message in ServerMessage.all(in: ending.errors) where !message.isError {
      log.warning("provision.server_warning", ["text": .string(message.text)])
    }
    guard ending.code == 0 else { throw PsqlFailure.failure(code: ending.code, lines: ending.errors) }
    return ending.output.filter { !$0.isEmpty }
  }

  /// On the search path, or where Debian puts the versions it does not link there.
  private static func find() -> String? {
    let path = ProcessEnvironment.variables["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    let folders =
      path.split(separator: ":").map(String.init) + (15...30).reversed().map { "/usr/lib/postgresql/\($0)/bin" }
    return folders.map { $0 + "/psql" }.first { access($0, X_OK) == 0 }
  }

  private static func write(_ script: String) throws -> String {
    let folder = ProcessEnvironment.variables["TMPDIR"].flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
    var template = Array("\(folder)/kizuna-provision-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    guard descriptor >= 0 else { throw HostFileError(path: folder, code: errno) }
    defer { close(descriptor) }
    let file = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard StandardStreams.write(script, to: descriptor) else { throw HostFileError(path: file, code: errno) }
    return file
  }
}
