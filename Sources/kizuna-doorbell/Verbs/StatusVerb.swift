import HostKit
import KizunaDoorbell
import KizunaSync

/// `status`: what the database tells, also while a `run` is active.
enum StatusVerb {
  static let command = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell status", summary: "Shows the state of the replica from its database.",
      options: [ConfigurationOption.option.required, .flag("json", "print one JSON object")] + LogOutput.options),
    run: run)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let configuration = try ConfigurationOption.load(arguments, log: LogOutput.log(from: arguments), signsIn: false)
    // Nothing else runs in this process, so the read may block.
    let status = try KizunaSyncReplicaStatus.read(databasePath: configuration.database)
    let now = SystemClock.shared.wallMilliseconds
    if arguments.flag("json") {
      StandardStreams.print(JSONWriter.text(json(status, configuration, now: now)))
    } else {
      for line in text(status, configuration, now: now) { StandardStreams.print(line) }
    }
    return .ok
  }

  private static func json(
    _ status: KizunaSyncReplicaStatus, _ configuration: GatewayConfiguration, now: Int64
  ) -> JSONValue {
    let oldest = status.oldestWrite.map { write -> JSONValue in
      [
        "table": .string(write.table), "age_s": .int(max(0, (now - write.at) / 1000)),
        "attempts": .int(write.attempts), "last_error": .string(orNull: write.lastError),
      ]
    }
    let error = status.lastError.map { error -> JSONValue in
      [
        "code": .string(error.code), "message": .string(error.message),
        "at": .string(UTCTimestamp.text(milliseconds: error.at)),
      ]
    }
    let doorbell = status.doorbell.map { doorbell -> JSONValue in
      [
        "state": .string(doorbell.state), "reason": .string(orNull: doorbell.reason),
        "since": .string(UTCTimestamp.text(milliseconds: doorbell.since)),
      ]
    }
    return [
      "database": .string(configuration.database), "cursor": .string(status.cursor),
      "client_id": .string(orNull: status.clientID), "outbox_depth": .int(status.outboxDepth),
      "oldest_write": oldest ?? nil, "rejections": .int(status.rejections), "overwrites": .int(status.overwrites),
      "parked_rows": .int(status.parkedRows), "blocked": .string(orNull: status.softBlock),
      "last_sync": .string(orNull: status.lastSyncAt.map(UTCTimestamp.text(milliseconds:))),
      "last_sweep": .string(orNull: status.lastSweepAt.map(UTCTimestamp.text(milliseconds:))),
      "hidden_rows_kept": .int(status.hiddenRowsKept),
      "clock_offset_s": status.clockOffset.map { .int(Int($0)) } ?? nil,
      "last_error": error ?? nil,
      "tables": .object(tables(status)), "problem": .string(orNull: status.problem),
      "copied_at": .string(orNull: status.copiedAt.map(UTCTimestamp.text(milliseconds:))),
      "held_writes": .object(status.heldWrites.mapValues(JSONValue.int)),
      "ignored_columns": .array(status.ignoredColumns.map(JSONValue.string)),
      "running": .bool(status.holder != nil), "pid": status.holder?.processID.map { .int(Int($0)) } ?? nil,
      "doorbell": doorbell ?? nil,
    ]
  }

  private static func tables(_ status: KizunaSyncReplicaStatus) -> [String: JSONValue] {
    var tables = status.rows.mapValues { rows -> JSONValue in ["rows": .int(rows)] }
    for table in status.missingTables { tables[table] = ["rows": nil, "missing": true] }
    for table in status.tablesToRead where status.rows[table] != nil {
      tables[table] = ["rows": .int(status.rows[table] ?? 0), "reading_again": true]
    }
    for (table, reason) in status.tablesSetAside {
      guard case .object(var entry)? = tables[table] else { continue }
      entry["set_aside"] = .string(reason)
      tables[table] = .object(entry)
    }
    for (names, key) in [(status.captureOff, "capture_off"), (status.uncaptured, "uncaptured")] {
      for table in names {
        guard case .object(var entry)? = tables[table] else { continue }
        entry[key] = true
        tables[table] = .object(entry)
      }
    }
    return tables
  }

  private static func text(
    _ status: KizunaSyncReplicaStatus, _ configuration: GatewayConfiguration, now: Int64
  ) -> [String] {
    let holder = status.holder.map { holder in
      "synchronised by process \(holder.processID.map(String.init) ?? "(unknown)")"
    }
    var lines = [
      "database    \(configuration.database), \(holder ?? "not synchronised by any process now")",
      "cursor      \(status.cursor)",
      "last sync   \(status.lastSyncAt.map { "\(UTCTimestamp.text(milliseconds: $0))\(status.isLastSyncExact ? "" : " or up to a minute later")" } ?? "never")",
      "outbox      \(Counted.of(status.outboxDepth, "write"))",
    ]
    if let error = status.lastError {
      lines.insert(
        "last error  \(UTCTimestamp.text(milliseconds: error.at)), \(error.code): \(error.message)", at: 3)
    }
    if let doorbell = status.doorbell {
      let reason = doorbell.reason.map { ": \($0)" } ?? ""
      lines.insert(
        "doorbell    \(doorbell.state) since \(UTCTimestamp.text(milliseconds: doorbell.since))\(reason)",
        at: lines.count - 1)
    }
    if let write = status.oldestWrite {
      let error = write.lastError.map { ", last error: \($0)" } ?? ""
      lines.append(
        "            oldest \(max(0, (now - write.at) / 1000)) s ago, table \(write.table), \(Counted.of(write.attempts, "attempt"))\(error)"
      )
    }
    lines.append(
      "refused     \(Counted.of(status.rejections, "write")); \(Counted.of(status.overwrites, "column")) overwritten; "
        + "\(Counted.of(status.parkedRows, "row")) parked"
        + (status.rejections + status.parkedRows > 0 ? "; see outbox list" : ""))
    if let offset = status.clockOffset {
      lines.append(
        "clock       this host's clock is \(abs(offset)) s \(offset > 0 ? "ahead of" : "behind") the server's")
    }
    if status.hiddenRowsKept > 0 {
      lines.append(
        "hidden      \(Counted.of(status.hiddenRowsKept, "row")) the server does not show any more, kept for undecided changes"
      )
    }
    if let block = status.softBlock { lines.append("blocked     \(SoftBlock.sentence(block))") }
    if let problem = status.problem { lines.append("problem     \(problem)") }
    for (table, rows) in status.rows.sorted(by: { $0.key < $1.key }) {
      let isRead = status.tablesToRead.contains(table)
      let note = isRead ? ", to be read again from the server" : ""
      lines.append("table       \(table), \(Counted.of(rows, "row"))\(note)")
    }
    for (table, reason) in status.tablesSetAside.sorted(by: { $0.key < $1.key }) {
      lines.append("set aside   \(table): \(reason)")
    }
    for (table, count) in status.heldWrites.sorted(by: { $0.key < $1.key }) {
      lines.append(
        "held        \(Counted.of(count, "write")) of \(table), which is not configured; sent when it is configured again"
      )
    }
    for table in status.captureOff {
      lines.append("capture     of \(table) is off, and no program can write to it; capture on ends that")
    }
    for table in status.uncaptured where status.tablesSetAside[table] == nil {
      lines.append(
        "capture     of \(table) lacks triggers, and changes go unseen; the next run or sync makes them again")
    }
    if !status.ignoredColumns.isEmpty {
      lines.append("left out    \(status.ignoredColumns.joined(separator: ", ")); the database has no such column")
    }
    for table in status.missingTables where status.tablesSetAside[table] == nil {
      lines.append(
        "table       \(table) was dropped; the next run or sync makes it again and reads its rows from the server")
    }
    return lines
  }
}
