import Glibc
import HostKit

/// A connection that stays open: transactions of several sessions can be interleaved statement by statement.
public actor SQLSession {
  private let process: ChildProcess
  private let pipe: Int32
  private let path: String
  private var count = 0
  private var last: Task<[String], any Error>?

  init(_ database: TestDatabase, user: String) throws {
    // In the cluster's folder, which goes with the cluster, however this process ends.
    var template = Array("\(database.socketFolder)/psql-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw HostFileError(path: database.socketFolder, code: errno) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    guard mkfifo(path + "/sql", 0o600) == 0 else { throw HostFileError(path: path, code: errno) }
    // Also for reading, so that opening it does not wait for the reader.
    pipe = open(path + "/sql", O_RDWR | O_CLOEXEC)
    guard pipe >= 0 else { throw HostFileError(path: path, code: errno) }
    process = try database.psql(["--set=ON_ERROR_STOP=0", "--file=\(path)/sql"], user: user)
  }

  deinit {
    close(pipe)
    process.send(signal: SIGKILL)
    unlink(path + "/sql")
    rmdir(path)
  }

  /// Runs statements, after those that other tasks run, and returns their rows.
  ///
  /// - Throws: `SQLFailure` when the last statement fails; the session goes on.
  @discardableResult
  public func run(_ sql: String, within timeout: UInt64 = .seconds(150)) async throws -> [String] {
    let task = Task { [last] in
      _ = await last?.result
      return try await send(sql).rows(within: timeout)
    }
    last = task
    return try await task.value
  }

  /// Sends statements without waiting for them, such as one that waits for a lock.
  public func send(_ sql: String) throws -> PendingSQL {
    count += 1
    let marker = "--\(count)--"
    let text = "\(sql)\n;\n\\echo \(marker) :ERROR :SQLSTATE\n\\warn \(marker)\n"
    guard StandardStreams.write(text, to: pipe) else { throw HostFileError(path: path, code: errno) }
    return PendingSQL(process: process, marker: marker)
  }

  /// Ends the connection, in whatever state its transaction is.
  public func end() async {
    await process.stop(grace: .seconds(5))
  }
}

/// Statements that were sent.
public struct PendingSQL: Sendable {
  let process: ChildProcess
  let marker: String

  /// Their rows, when they are through.
  public func rows(within timeout: UInt64 = .seconds(150)) async throws -> [String] {
    var rows: [String] = []
    while true {
      let line = try await process.line(of: .output, within: timeout)
      guard line.hasPrefix(marker + " ") else {
        rows.append(line)
        continue
      }
      var errors: [String] = []
      while true {
        let line = try await process.line(of: .errors, within: timeout)
        if line == marker { break }
        errors.append(line)
      }
      if line.hasPrefix(marker + " true") { throw SQLFailure(errors) }
      return rows
    }
  }
}
