import Glibc
import HostKit

/// One database of the cluster, spoken to with `psql`.
public struct TestDatabase: Sendable {
  /// The folder of the server's socket.
  public let socketFolder: String
  public let name: String

  /// Where libpq finds it.
  public func url(user: String = "postgres") -> String { "postgresql://\(user)@/\(name)?host=\(socketFolder)" }

  /// What makes libpq programs use it.
  public func environment(user: String = "postgres") -> [String: String] {
    ["PGHOST": socketFolder, "PGDATABASE": name, "PGUSER": user, "PGAPPNAME": "test"]
  }

  /// Runs SQL or a script for `psql`, and returns what it prints: a line per row, columns parted by `|`.
  ///
  /// - Throws: `SQLFailure` at the first statement that fails.
  @discardableResult
  public func run(_ sql: String, user: String = "postgres", inOneTransaction: Bool = false) async throws -> [String] {
    let file = try write(sql)
    defer { unlink(file) }
    let ending = try await psql(["--file=\(file)"] + (inOneTransaction ? ["--single-transaction"] : []), user: user)
      .ending()
    guard ending.code == 0 else { throw SQLFailure(ending.errors) }
    return ending.output
  }

  /// Runs SQL and returns what the server says besides results: notices, and whatever its log sends to the client.
  public func messages(_ sql: String, user: String = "postgres") async throws -> [String] {
    let file = try write(sql)
    defer { unlink(file) }
    let ending = try await psql(["--file=\(file)"], user: user).ending()
    guard ending.code == 0 else { throw SQLFailure(ending.errors) }
    return ending.errors
  }

  /// A connection that stays open between statements.
  public func session(user: String = "postgres") throws -> SQLSession {
    try SQLSession(self, user: user)
  }

  /// The whole schema and data, as `pg_dump` writes it, without what differs from run to run.
  public func dump(_ options: [String] = []) async throws -> [String] {
    guard let installation = PostgresInstallation.newest else {
      throw ChildProcessError(message: PostgresInstallation.absence)
    }
    let ending = try await ChildProcess(
      executable: installation.programs + "/pg_dump", arguments: options, environment: environment()
    ).ending()
    guard ending.code == 0 else { throw SQLFailure(ending.errors) }
    return ending.output.filter { !$0.hasPrefix("\\restrict ") && !$0.hasPrefix("\\unrestrict ") }
  }

  public func drop() async throws {
    try await TestDatabase(socketFolder: socketFolder, name: "postgres")
      .run("drop database if exists \(name) with (force)")
  }

  func psql(_ arguments: [String], user: String) throws -> ChildProcess {
    guard let installation = PostgresInstallation.newest else {
      throw ChildProcessError(message: PostgresInstallation.absence)
    }
    let options = ["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1"]
    return try ChildProcess(
      executable: installation.programs + "/psql", arguments: options + arguments,
      environment: environment(user: user).merging(["PGOPTIONS": "-c client_min_messages=warning"]) { $1 })
  }

  /// In the cluster's folder, which goes with the cluster.
  private func write(_ text: String) throws -> String {
    var template = Array("\(socketFolder)/sql-XXXXXX".utf8CString)
    let descriptor = mkstemp(&template)
    guard descriptor >= 0 else { throw HostFileError(path: socketFolder, code: errno) }
    defer { close(descriptor) }
    let file = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard StandardStreams.write(text, to: descriptor) else { throw HostFileError(path: file, code: errno) }
    return file
  }
}

/// What `psql` said of a statement that failed.
public struct SQLFailure: Error, Sendable, CustomStringConvertible {
  public let lines: [String]

  init(_ lines: [String]) { self.lines = lines }

  /// The text of the first error, without where it stands.
  public var message: String {
    let marker = "ERROR:  "
    for line in lines {
      for index in line.indices where line[index...].hasPrefix(marker) {
        return String(line[index...].dropFirst(marker.count))
      }
    }
    return description
  }

  public var description: String { lines.joined(separator: "\n") }
}
