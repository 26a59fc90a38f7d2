import HostKit
import KizunaSync

/// What the bookkeeping of a replica says about its health.
enum ReplicaVerdict {
  /// A write that waits longer than so many milliseconds waits for more than the network.
  static let patience: Int64 = 600_000

  /// - Parameters:
  ///   - status: nil when it cannot be read.
  ///   - now: milliseconds since 1970.
  static func findings(_ status: KizunaSyncReplicaStatus?, now: Int64) -> [Finding] {
    guard let status else { return [.skipped(.replica, "there is no replica that can be read")] }
    let findings = failures(status) + warnings(status, now: now)
    guard findings.isEmpty else { return findings }
    let waiting =
      status.outboxDepth == 0
      ? "nothing waits" : "\(Counted.of(status.outboxDepth, "write")) \(status.outboxDepth == 1 ? "waits" : "wait")"
    let all = rows(status.rows.values.reduce(0, +))
    return [.ok(.replica, "\(all) in \(Counted.of(status.rows.count, "table")), \(waiting) to be sent")]
  }

  private static func failures(_ status: KizunaSyncReplicaStatus) -> [Finding] {
    var findings: [Finding] = []
    if let block = status.softBlock {
      findings.append(
        .failed(
          .replica, .workLeft, sentence: SoftBlock.sentence(block), otherwise: "see kizuna-doorbell status"))
    }
    if let problem = status.problem {
      findings.append(
        .failed(.replica, .database, sentence: problem, otherwise: "change the table so that it can be synced"))
    }
    return findings
  }

  private static func warnings(_ status: KizunaSyncReplicaStatus, now: Int64) -> [Finding] {
    var findings: [Finding] = []
    if status.rejections > 0 {
      findings.append(
        .warning(
          .replica,
          "the server refused \(Counted.of(status.rejections, "write"))",
          remedy: "see why with kizuna-doorbell outbox list, then retry or discard them"))
    }
    if status.parkedRows > 0 {
      findings.append(
        .warning(
          .replica,
          "\(rows(status.parkedRows)) of the server \(status.parkedRows == 1 ? "is" : "are") kept aside, because this database cannot take \(status.parkedRows == 1 ? "it" : "them")",
          remedy: "see which and why with kizuna-doorbell outbox list, and change the constraint or the row in its way")
      )
    }
    for (table, count) in status.heldWrites.sorted(by: { $0.key < $1.key }) {
      findings.append(
        .warning(
          .replica,
          "\(Counted.of(count, "write")) of \(table) \(count == 1 ? "waits" : "wait"), which is not configured",
          remedy: "configure it again, and they are sent; reset gives them up", for: table))
    }
    for (table, reason) in status.tablesSetAside.sorted(by: { $0.key < $1.key }) {
      let parts = Finding.split(reason)
      findings.append(
        .warning(.replica, parts.text, remedy: parts.remedy ?? "change the table so that it can take rows", for: table))
    }
    for table in status.captureOff {
      findings.append(
        .warning(
          .replica, "capture of \(table) is off, so no program can write to it",
          remedy: "turn it on with kizuna-doorbell capture on", for: table))
    }
    for table in status.uncaptured where status.tablesSetAside[table] == nil {
      findings.append(
        .warning(
          .replica, "triggers of \(table) are gone, so changes to it go unseen",
          remedy: "run or sync once, which makes them again, reads the table from the server and queues what differs",
          for: table))
    }
    if let oldest = status.oldestWrite, now - oldest.at > patience {
      findings.append(
        .warning(
          .replica,
          "the oldest write waits for \((now - oldest.at) / 1000) s and was sent \(Counted.of(oldest.attempts, "time"))",
          remedy: "see in kizuna-doorbell status what the last attempt met"))
    }
    if let error = status.lastError {
      let parts = Finding.split(error.message)
      findings.append(
        .warning(
          .replica, "the last run failed: \(error.code), \(parts.text)",
          remedy: parts.remedy ?? "sync again when all else is well"))
    }
    let again = Set(status.missingTables + status.tablesToRead).subtracting(status.tablesSetAside.keys).sorted()
    if !again.isEmpty {
      findings.append(
        .warning(
          .replica, "to be read again from the server: \(again.joined(separator: ", "))", remedy: "run or sync once"))
    }
    return findings
  }

  static func rows(_ count: Int) -> String { Counted.of(count, "row") }
}
