import HostKit
import Testing

@testable import KizunaDoorbell
@testable import KizunaSync

@Suite struct ReplicaVerdictTests {
  private static let now: Int64 = 1_800_000_000_000

  private func status(
    oldest: KizunaSyncReplicaStatus.OldestWrite? = nil, rejections: Int = 0, parked: Int = 0, block: String? = nil,
    error: KizunaSyncReplicaStatus.LastError? = nil, missing: [String] = [], problem: String? = nil
  ) -> KizunaSyncReplicaStatus {
    KizunaSyncReplicaStatus(
      cursor: "7", clientID: nil, outboxDepth: oldest == nil ? 0 : 1, oldestWrite: oldest, rejections: rejections,
      overwrites: 0, parkedRows: parked, softBlock: block, lastSyncAt: nil, isLastSyncExact: false, lastSweepAt: nil,
      hiddenRowsKept: 0,
      clockOffset: nil,
      lastError: error, rows: ["todos": 3],
      missingTables: missing, tablesToRead: [], copiedAt: nil, ignoredColumns: [], problem: problem,
      tablesSetAside: [:], holder: nil)
  }

  private func write(age: Int64) -> KizunaSyncReplicaStatus.OldestWrite {
    .init(table: "todos", at: Self.now - age, attempts: 9, lastError: nil)
  }

  @Test func nothingToSayIsOneFinding() {
    for status in [status(), status(oldest: write(age: ReplicaVerdict.patience))] {
      let findings = ReplicaVerdict.findings(status, now: Self.now)
      #expect(findings.map(\.status) == [.ok])
      #expect(findings[0].text.hasPrefix("3 rows in 1 table, "))
    }
    #expect(ReplicaVerdict.findings(nil, now: Self.now).map(\.status) == [.skipped])
  }

  @Test func eachTableOutOfStepIsAFinding() {
    var status = KizunaSyncReplicaStatus(
      cursor: "7", clientID: nil, outboxDepth: 0, oldestWrite: nil, rejections: 0, overwrites: 0, parkedRows: 0,
      softBlock: nil, lastSyncAt: nil, isLastSyncExact: false, lastSweepAt: nil, hiddenRowsKept: 0, clockOffset: nil,
      lastError: nil, rows: ["a": 1, "b": 1, "c": 1, "d": 1], missingTables: [], tablesToRead: ["b"], copiedAt: nil,
      ignoredColumns: [], problem: nil, tablesSetAside: ["b": "no row of b can be written; take the trigger out"],
      holder: nil)
    status.heldWrites = ["a": 2]
    status.captureOff = ["c"]
    status.uncaptured = ["d"]
    let findings = ReplicaVerdict.findings(status, now: Self.now)
    #expect(findings.map(\.status) == [.warning, .warning, .warning, .warning])
    #expect(findings.map(\.subject) == ["a", "b", "c", "d"])
    // To run once more does not help a table that is set aside.
    #expect(
      findings.map { $0.remedy?.contains("run or sync once") } == [false, false, false, true],
      "\(findings.map(\.remedy))")
    #expect(findings[1].remedy == "take the trigger out")
  }

  @Test func eachTroubleIsAFinding() {
    let all = status(
      oldest: write(age: ReplicaVerdict.patience + 1), rejections: 2, parked: 1, block: "identity_changed",
      error: .init(code: "REMOTE", message: "it is away; wait", at: 1), missing: ["todos"],
      problem: "todos has no key; declare one")
    let findings = ReplicaVerdict.findings(all, now: Self.now)
    #expect(findings.map(\.status) == [.failed, .failed] + [Finding.Status](repeating: .warning, count: 5))
    #expect(findings.map(\.exitCode) == [.workLeft, .database, .ok, .ok, .ok, .ok, .ok])
    let words = [
      "another user", "no key", "refused 2 writes", "1 row of the server is kept aside", "600 s", "REMOTE, it is away",
      "todos",
    ]
    for (finding, word) in zip(findings, words) {
      #expect(finding.text.contains(word), "\(finding.text)")
      #expect(finding.remedy?.isEmpty == false)
    }
    #expect(findings[5].remedy == "wait")
  }
}
