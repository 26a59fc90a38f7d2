import Glibc
import HTTPClient
import HostKit
import KizunaDoorbell
import KizunaSync

/// Inserts by plain SQL into a replica and into a copy of it without triggers, in turns; then a queue that is pushed.
actor WritesBench {
  private let thread = SerialThread(name: "kizuna-writes")
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  private let stack: StackChild
  private let folder: BenchFolder
  private let log: HostLog

  init(_ stack: StackChild, folder: BenchFolder, log: HostLog) {
    self.stack = stack
    self.folder = folder
    self.log = log
  }

  /// Inserts that commit one by one wait for the disk, so there are fewer of them.
  static func singles(of rows: Int) -> Int { max(1, rows / 100) }

  func run(rows: Int, queued: Int, repeats: Int) async throws -> WritesReport {
    defer { thread.stop() }
    try await makeOriginals()
    var report = WritesReport(rows: rows, singles: Self.singles(of: rows))
    for _ in 0..<repeats {
      for way in InsertWay.allCases {
        let count = way == .single ? report.singles : rows
        let bare = try insert(way, count, into: "bare")
        let captured = try insert(way, count, into: "captured")
        report.inserts[way, default: .init()].bare.append(bare)
        report.inserts[way, default: .init()].captured.append(captured)
      }
      report.pushes.append(try await push(queued))
    }
    return report
  }

  /// A replica as the gateway leaves it, and the same file without its triggers.
  private func makeOriginals() async throws {
    let original = folder.path + "/original.db"
    let client = KizunaSyncClient(http: nil, log: log)
    try await client.create(try stack.configuration(database: original).clientConfiguration)
    await client.dispose()
    let database = try PlainDatabase(original)
    try database.execute("VACUUM INTO '\(folder.path)/captured.original'")
    for trigger in try database.texts("SELECT name FROM sqlite_schema WHERE type = 'trigger'") {
      try database.execute("DROP TRIGGER \"\(trigger)\"")
    }
    try database.execute("VACUUM INTO '\(folder.path)/bare.original'")
  }

  /// - Returns: nanoseconds.
  private func insert(_ way: InsertWay, _ count: Int, into name: String) throws -> UInt64 {
    folder.clear(name + ".db")
    let path = "\(folder.path)/\(name).db"
    try PlainDatabase("\(folder.path)/\(name).original").execute("VACUUM INTO '\(path)'")
    try PlainDatabase(path).execute("PRAGMA journal_mode = WAL")
    // As another program opens it, with the default cache and the default synchronous.
    let database = try PlainDatabase(path)
    if way == .statement { try database.execute(InsertWay.makeSource(count)) }
    let start = SystemClock.monotonic
    switch way {
    case .statement:
      try database.execute("INSERT INTO bench(owner_id, title, n) SELECT owner_id, title, n FROM source")
    case .transaction:
      try database.execute("BEGIN")
      try database.repeated(InsertWay.one, 1..<(count + 1))
      try database.execute("COMMIT")
    case .single:
      try database.repeated(InsertWay.one, 1..<(count + 1))
    }
    return SystemClock.monotonic - start
  }

  // MARK: Push

  private func push(_ count: Int) async throws -> WritesReport.Push {
    folder.clear("push.db")
    let configuration = try stack.configuration(database: folder.path + "/push.db")
    // A replica that has synced before knows whose rows these are.
    _ = try await SingleSync.run(configuration, log: log)
    try queue(count, into: configuration.database)

    var parts = GatewayParts.live()
    let meter = RequestMeter(parts.http)
    parts.http = meter
    let start = SystemClock.monotonic
    let summary = try await SingleSync.run(configuration, parts: parts, log: log)
    let exchanges = meter.exchanges
    guard summary.isDelivered, let pulled = exchanges.first(where: { $0.function == "pull" })
    else { throw CommandFailure(.failure, "the queued writes were not delivered") }
    // The session of the run before is still good, so nothing is asked before the first push.
    let pushes = exchanges.filter { $0.function == "push" }
    let first = pushes.first?.start ?? start
    return WritesReport.Push(
      writes: count, requests: pushes.count, queueing: first - start,
      // The first pull is sent after the last verdicts were stored.
      total: pulled.start - first, roundTrips: pushes.reduce(0) { $0 + $1.end - $1.start })
  }

  private func queue(_ count: Int, into path: String) throws {
    let database = try PlainDatabase(path)
    try database.execute(InsertWay.makeSource(count, owner: "NULL"))
    try database.execute("INSERT INTO bench(owner_id, title, n) SELECT owner_id, title, n FROM source")
  }
}

/// How a program inserts. The key is the default of the table's column, a random uuid.
enum InsertWay: String, CaseIterable, Sendable {
  /// One statement that inserts all rows.
  case statement
  /// A prepared statement for each row, all in one transaction.
  case transaction
  /// A transaction for each row.
  case single

  static let one =
    "INSERT INTO bench(owner_id, title, n) VALUES ('\(owner)', 'row number ' || ?1 || ' of the bench', ?1)"
  private static let owner = "00000000-0000-4000-8000-000000000001"

  static func makeSource(_ count: Int, owner: String = "'\(owner)'") -> String {
    """
    CREATE TEMP TABLE source(owner_id, title, n);
    WITH RECURSIVE number(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM number WHERE i < \(count))
    INSERT INTO source SELECT \(owner), 'row number ' || i || ' of the bench', i FROM number;
    """
  }
}
