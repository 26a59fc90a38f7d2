import HostKit
import Testing

@testable import KizunaDoorbell
@testable import KizunaSync

@Suite struct DatabaseVerdictTests {
  private static let path = "/srv/todos.db"

  private static func sound() -> DatabaseExamination {
    var found = DatabaseExamination(file: .present(bytes: 123 << 20))
    found.freeBytes = 10 << 30
    found.journalMode = "wal"
    found.format = .version(DatabaseExamination.knownFormat)
    return found
  }

  private func statuses(_ found: DatabaseExamination) -> [Finding.Check: Finding] {
    let findings = DatabaseVerdict.findings(found, path: Self.path)
    #expect(Set(findings.map(\.check)).count == findings.count)
    return Dictionary(uniqueKeysWithValues: findings.map { ($0.check, $0) })
  }

  @Test func aSoundFileIsAllRight() {
    let findings = DatabaseVerdict.findings(Self.sound(), path: Self.path)
    #expect(findings.allSatisfy { $0.status == .ok })
    #expect(
      findings.map(\.check) == [
        .folder, .database, .integrity, .references, .format, .writeAheadLog, .disk, .lock,
      ])
    #expect(findings[1].text == "an SQLite database of 123 MiB")
  }

  typealias Change = @Sendable (inout DatabaseExamination) -> Void

  private static let faults: [(Finding.Check, Finding.Status, String, Change)] = [
    (.folder, .failed, "cannot be written", { $0.accessProblem = "the directory cannot be written; make it so" }),
    (.database, .failed, "no database", { $0.openingProblem = "it is no database; name another" }),
    (.integrity, .failed, "page 3", { $0.damage = ["page 3: never\nused", "b"] }),
    (.references, .warning, "2 rows of a refer to b", { $0.orphans = [.init(table: "a", parent: "b", count: 2)] }),
    (.format, .failed, "newer release", { $0.format = .version(DatabaseExamination.knownFormat + 1) }),
    (.format, .warning, "_kizunasync_meta", { $0.format = .incomplete(["_kizunasync_meta"]) }),
    (.writeAheadLog, .warning, "delete", { $0.journalMode = "delete" }),
    (.disk, .failed, "bytes are free", { $0.freeBytes = 4096 }),
    (.disk, .warning, "MiB are free", { $0.freeBytes = 40 << 20 }),
  ]

  @Test(arguments: faults)
  func aFaultIsOneFinding(check: Finding.Check, status: Finding.Status, words: String, change: Change) throws {
    var found = Self.sound()
    change(&found)
    let all = statuses(found)
    let finding = try #require(all[check])
    #expect(finding.status == status)
    #expect(finding.text.contains(words) && !finding.text.contains("\n"))
    #expect(finding.remedy?.isEmpty == false)
    #expect(finding.exitCode == (status == .failed ? .database : .ok))
    // What can still be looked at is looked at.
    #expect(all.values.filter { $0.status == .failed || $0.status == .warning }.count == 1)
    #expect(all[.disk]?.status != .skipped && all[.lock]?.status == .ok)
  }

  @Test func whatIsNotThereYetIsNoFault() {
    var found = DatabaseExamination(file: .missing)
    found.freeBytes = 1 << 40
    let all = statuses(found)
    #expect(all[.database]?.status == .ok && all[.integrity]?.status == .skipped)
    #expect(Array(all.values).exitCode == .ok)
    var plain = Self.sound()
    (plain.format, plain.journalMode) = (.untouched, "delete")
    #expect(statuses(plain).values.allSatisfy { $0.status == .ok })
  }

  @Test func aHolderIsNoFault() {
    var found = Self.sound()
    found.holder = .init(processID: 4711)
    #expect(statuses(found)[.lock]?.text.contains("process 4711") == true)
    #expect(statuses(found)[.lock]?.status == .ok)
  }
}
