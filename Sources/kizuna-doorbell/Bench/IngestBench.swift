import CIngestFloor
import Glibc
import HTTPClient
import HostKit
import KizunaDoorbell

/// The first pull of a filled server: by `sync` into a new replica, and by the bare C loop into a new database, in turns.
actor IngestBench {
  private let thread = SerialThread(name: "kizuna-ingest")
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  private let stack: StackChild
  private let folder: BenchFolder
  private let log: HostLog

  init(_ stack: StackChild, folder: BenchFolder, log: HostLog) {
    self.stack = stack
    self.folder = folder
    self.log = log
  }

  func run(rows: Int, repeats: Int) async throws -> IngestReport {
    defer { thread.stop() }
    guard kd_ingest_floor_has_cjson() != 0 else {
      throw CommandFailure(
        .failure, "bench ingest compares with a loop that parses by cJSON, which is missing: apt-get install libcjson1")
    }
    try fill(rows, try await token())
    var report = IngestReport(rows: rows)
    for number in 0..<repeats {
      let (took, pull) = try await pullByReplica(rows)
      report.replica.append(took)
      // Before the loop has run in this process: what it takes is not the replica's.
      if number == 0 { report.peakBytes = Self.peakBytes() }
      try pullByFloor(pull, rows, &report)
    }
    return report
  }

  private func token() async throws -> String {
    let parts = GatewayParts.live()
    let session = try stack.configuration(database: folder.path + "/none.db").makeSession(
      http: parts.http, stateFile: nil)
    let token = try await session.accessToken().value
    await session.stop()
    await parts.shutdown()
    return token
  }

  private func fill(_ rows: Int, _ token: String) throws {
    let writer = try BenchWriter(
      url: try ServerURL(stack.url).http(), key: stack.publishableKey, token: token,
      owner: UnverifiedToken(token)?.subject ?? "")
    var left = rows
    while left > 0 {
      let count = min(left, 500)
      try writer.insertMany(count)
      left -= count
    }
  }

  private func pullByReplica(_ rows: Int) async throws -> (UInt64, HTTPRequest) {
    folder.clear("replica.db")
    let configuration = try stack.configuration(database: folder.path + "/replica.db")
    var parts = GatewayParts.live()
    let meter = RequestMeter(parts.http)
    parts.http = meter
    let start = SystemClock.monotonic
    let summary = try await SingleSync.run(configuration, parts: parts, log: log)
    let took = SystemClock.monotonic - start
    let found = try PlainDatabase(configuration.database).texts("SELECT count(*) FROM bench")
    guard summary.isDelivered, found == ["\(rows)"], let pull = meter.firstPull else {
      throw CommandFailure(.failure, "the replica has \(found.first ?? "no") rows and not \(rows)")
    }
    return (took, pull)
  }

  private func pullByFloor(_ pull: HTTPRequest, _ rows: Int, _ report: inout IngestReport) throws {
    folder.clear("floor.db")
    var request = IngestFloor(pull)
    let start = SystemClock.monotonic
    let (found, pages, bytes) = try request.run(database: folder.path + "/floor.db")
    report.floor.append(SystemClock.monotonic - start)
    guard found == rows else { throw CommandFailure(.failure, "the bare loop has \(found) rows and not \(rows)") }
    (report.pages, report.bytes) = (pages, bytes)
  }

  /// The most memory this process ever had resident.
  private static func peakBytes() -> Int {
    // A file of /proc says that it is empty, so it is read by hand.
    let descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return 0 }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 8192)
    let count = read(descriptor, &buffer, buffer.count)
    let line = String(decoding: buffer[..<max(0, count)], as: UTF8.self).split(separator: "\n")
      .first { $0.hasPrefix("VmHWM:") }
    return (line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { Int($0) } ?? 0) * 1024
  }
}

/// The bare loop's arguments, kept where C finds them.
private struct IngestFloor {
  private static let columns = ["owner_id", "title", "n"]
  private let url: String
  private let headers: [String]
  private let head: String
  private let tail: String

  /// - Parameter pull: the replica's first request, which is sent again with the cursors that come.
  init(_ pull: HTTPRequest) {
    url = pull.url
    headers = pull.headers.map { "\($0.name): \($0.value)" }
    let body = String(decoding: pull.body ?? [], as: UTF8.self)
    let mark = #""cursor":""#
    let parts = body.split(separator: mark, maxSplits: 1, omittingEmptySubsequences: false)
    head = String(parts[0]) + mark
    tail = parts.count == 2 ? String(parts[1].drop { $0 != "\"" }) : ""
  }

  /// With the same pragmas and the same table as the replica's, but no triggers and no bookkeeping.
  mutating func run(database: String) throws -> (rows: Int, pages: Int, bytes: Int) {
    let script = """
      PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8000;
      CREATE TABLE bench(id NOT NULL, owner_id, title, n, PRIMARY KEY (id));
      """
    var texts = [url, head, tail, database, script, "INSERT INTO bench VALUES (?, ?, ?, ?)"]
    texts += headers + Self.columns
    // Copies that C may keep for the call.
    let copies = texts.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    let constants = copies.map { UnsafePointer($0) }
    return try constants.withUnsafeBufferPointer { pointers in
      var floor = kd_ingest_floor()
      floor.url = pointers[0]
      floor.body_head = pointers[1]
      floor.body_tail = pointers[2]
      floor.database = pointers[3]
      floor.script = pointers[4]
      floor.insert = pointers[5]
      floor.headers = pointers.baseAddress.map { $0 + 6 }
      floor.header_count = headers.count
      floor.columns = pointers.baseAddress.map { $0 + 6 + headers.count }
      floor.column_count = Self.columns.count
      guard kd_ingest_floor_run(&floor) == 0 else {
        let reason = withUnsafeBytes(of: floor.failure) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        throw CommandFailure(.failure, "the bare loop failed: \(reason)")
      }
      return (Int(floor.rows), Int(floor.pages), Int(floor.bytes))
    }
  }
}
