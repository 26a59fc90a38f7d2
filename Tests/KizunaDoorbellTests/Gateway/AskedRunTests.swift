import Glibc
import HostKit
import KizunaSync
import Testing

@testable import KizunaDoorbell

@Suite struct AskedRunTests {
  /// A file that was deleted beside a gateway makes another program of it no more than of anything else.
  @Test func whoCannotBeAskedIsTakenForWhatItMayBe() throws {
    let database = "/tmp/kizuna-asked-\(getpid()).db"
    let without = GatewayError.takesNoRequests(7, database: database)
    #expect(without.kind == .locked)
    #expect(without.message.contains("\(database)-kizuna.run, through which it is asked, is not there"))
    #expect(without.message.contains("restart it"))
    let file = try RunRecordFile(database: database, manner: .deaf)
    defer { unlink(RunRecordFile.path(ofDatabase: database)) }
    let with = GatewayError.takesNoRequests(7, database: database)
    #expect(
      with.message.contains("process 7") && with.message.hasSuffix("it is not kizuna-doorbell run; stop it first"))
    withExtendedLifetime(file) {}
  }

  private static let failure = RunRecord.Failure(kind: "database", code: "STORE", message: "the disk is full", at: 1)

  private func record(
    pid: Int32 = 42, _ manner: RunRecord.Manner = .wokenByHangup, startedAt: UInt64 = 0,
    failure: RunRecord.Failure? = nil
  ) -> RunRecord {
    RunRecord(processID: pid, manner: manner, number: 1, startedAt: startedAt, failure: failure)
  }

  @Test func nobodyIsAskedBeforeTheHolderSaysHow() {
    let asked = AskedRun(holder: 42)
    #expect(asked.step(nil) == .wait)
    #expect(asked.step(record(pid: 41)) == .wait)
    #expect(asked.step(record(.deaf)) == .refuse)
    #expect(asked.step(record(.brief)) == .waitForRelease)
    #expect(asked.step(record()) == .ask)
    // How an earlier run ended is no answer to a question not asked yet.
    #expect(asked.step(record(startedAt: 99, failure: Self.failure)) == .ask)
  }

  @Test func onlyARunThatBeganAfterwardsAnswers() {
    var asked = AskedRun(holder: 42)
    asked.ask(at: 100)
    #expect(asked.step(record()) == .wait)
    #expect(asked.step(record(startedAt: 99)) == .wait)
    #expect(asked.step(record(startedAt: 99, failure: Self.failure)) == .wait)
    #expect(asked.step(record(pid: 41, startedAt: 100)) == .wait)
    #expect(asked.step(record(startedAt: 100)) == .succeeded)
    #expect(
      asked.step(record(startedAt: 101, failure: Self.failure))
        == .failed(GatewayError(.database, "the disk is full")))
  }

  @Test(arguments: [
    GatewayError.Kind.configuration, .authentication, .locked, .database, .unreachable, .other,
  ])
  func theKindOfAFailureSurvivesTheRecord(kind: GatewayError.Kind) {
    let failure = RunRecord.Failure(kind: kind.rawValue, code: "REMOTE", message: "x", at: 0)
    #expect(GatewayError(failure) == GatewayError(kind, "x"))
    #expect(GatewayError(RunRecord.Failure(kind: "of a newer release", code: "", message: "x", at: 0)).kind == .other)
  }
}
