import HostKit
import KizunaDoorbell
import KizunaSync

/// Makes the server ring: by inserting rows into the embedded server, or by writing one text cell of a configured server
/// with and without a space at its end, because a write that changes nothing does not ring. `restore` puts it back.
actor BenchSource {
  private enum Change {
    case insert
    case sql(BenchSQL)
    case touch(table: String, key: String, column: String, value: String)
  }

  private let thread = SerialThread(name: "kizuna-writer")
  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  private let change: Change
  private let url: String
  private let key: String
  private let token: String
  private let owner: String
  private var writer: BenchWriter?
  private var commits: BareHTTP?
  private var seen = "0"
  private var hasSpace = false

  private init(_ change: Change, _ configuration: GatewayConfiguration, token: String) {
    self.change = change
    url = configuration.url.http()
    key = configuration.publishableKey.value
    self.token = token
    owner = UnverifiedToken(token)?.subject ?? ""
  }

  static func embedded(_ configuration: GatewayConfiguration, token: String) -> BenchSource {
    BenchSource(.insert, configuration, token: token)
  }

  static func postgres(_ configuration: GatewayConfiguration, token: String, _ session: BenchSQL) -> BenchSource {
    BenchSource(.sql(session), configuration, token: token)
  }

  /// - Throws: `CommandFailure` when no table has a row with a text cell that can be written.
  static func configured(
    _ configuration: GatewayConfiguration, client: KizunaSyncClient, token: String
  ) async throws -> BenchSource {
    for (name, table) in configuration.tables.sorted(by: { $0.key < $1.key })
    where table.syncMode == .readWrite && table.conflictMode == .arrival && table.key.count == 1 {
      let found = try await client.from(name).select().limit(1).execute() as? [[String: Any]]
      guard let row = found?.first, let id = row[table.key[0]].map({ "\($0)" }) else { continue }
      var fixed = Set(table.key)
      switch table.bucket {
      case .owner(let column), .column(let column, _): fixed.insert(column)
      case .wholeTable: break
      }
      // A time or a uuid is text too, but takes no space.
      let free = row.keys.sorted().filter { !fixed.contains($0) && (row[$0] as? String).map(isProse) == true }
      guard let column = free.first, let value = row[column] as? String else { continue }
      return BenchSource(.touch(table: name, key: id, column: column, value: value), configuration, token: token)
    }
    throw CommandFailure(
      .failure,
      "bench rings by changing a text cell and putting it back, but no table that may be written has a row with one; "
        + "insert one first")
  }

  private static func isProse(_ text: String) -> Bool {
    text.contains { $0.isLetter } && text.count < 1000 && !text.contains("-") && !text.contains(":")
  }

  /// Makes one change.
  /// - Returns: when the write, or the `COMMIT` of it, was sent, `CLOCK_MONOTONIC`.
  func ring() async throws -> UInt64 {
    if case .sql(let session) = change { return try await session.insert(owner: owner) }
    let writer = try self.writer ?? BenchWriter(url: url, key: key, token: token, owner: owner)
    self.writer = writer
    let start = SystemClock.monotonic
    switch change {
    case .insert, .sql: try writer.insert()
    case .touch(let table, let key, let column, let value):
      hasSpace.toggle()
      try writer.write(table: table, key: key, column: column, value: .string(value + (hasSpace ? " " : "")))
    }
    return start
  }

  /// Puts the cell back as it was.
  func restore() async throws {
    guard hasSpace else { return }
    _ = try await ring()
  }

  /// When the embedded server committed the last change, `CLOCK_MONOTONIC`.
  func committedAt() throws -> UInt64? {
    let http = try BareHTTP(url: "\(url)/_localstack/commits?after=\(seen)", headers: [])
    let list = try JSONValue(parsing: try http.get())["commits"]?.arrayValue ?? []
    guard let last = list.last, let seq = last["seq"]?.stringValue, let at = last["monotonic_ns"]?.numberValue?.int64
    else { return nil }
    seen = seq
    return UInt64(at)
  }

  func close() {
    writer = nil
    thread.stop()
  }
}
