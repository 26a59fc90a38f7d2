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
    let waiting = status.outboxDepth == 0 ? "nothing waits" : "\(status.outboxDepth) writes wait"
    let all = rows(status.rows.values.reduce(0, +))
    return [.ok(.replica, "\(all) in \(status.rows.count) tables, \(waiting) to be sent")]
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
    if status.rejections + status.parkedRows > 0 {
      findings.append(
        .warning(
          .replica,
          "\(status.rejections) writes were refused by the server, \(status.parkedRows) of its rows by a constraint here",
          remedy: "look at kizuna-doorbell outbox list and status"))
    }
    if let oldest = status.oldestWrite, now - oldest.at > patience {
      findings.append(
        .warning(
          .replica, "the oldest write waits for \((now - oldest.at) / 1000) s and was sent \(oldest.attempts) times",
          remedy: "see in kizuna-doorbell status what the last attempt met"))
    }
    if let error = status.lastError {
      let parts = Finding.split(error.message)
      findings.append(
        .warning(
          .replica, "the last run failed: \(error.code), \(parts.text)",
          remedy: parts.remedy ?? "sync again when all else is well"))
    }
    let again = Set(status.missingTables + status.tablesToRead).sorted()
    if !again.isEmpty {
      findings.append(
        .warning(
          .replica, "to be read again from the server: \(again.joined(separator: ", "))", remedy: "run or sync once"))
    }
    return findings
  }

  static func rows(_ count: Int) -> String { count == 1 ? "1 row" : "\(count) rows" }
}
