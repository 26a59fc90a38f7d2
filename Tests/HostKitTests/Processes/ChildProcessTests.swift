import Glibc
import Testing

@testable import HostKit

@Suite struct ChildProcessTests {
  private func shell(_ script: String, environment: [String: String] = [:]) throws -> ChildProcess {
    try ChildProcess(executable: "/bin/sh", arguments: ["-c", script], environment: environment)
  }

  @Test func collectsOutputAndCode() async throws {
    let ending = await (try shell("echo a; echo b >&2; printf c; exit 3")).ending()
    #expect(ending == .init(code: 3, output: ["a", "c"], errors: ["b"]))
  }

  @Test func waitsForALineWhileTheProgramRuns() async throws {
    let child = try shell("echo one; echo two; echo three; exec sleep 3600")
    #expect(try await child.line(of: .output, within: .seconds(150)) { $0.hasPrefix("t") } == "two")
    #expect(try await child.line(of: .output, within: .seconds(150)) == "three")
    #expect(await child.stop().code == 128 + SIGTERM)
  }

  @Test func saysThatTheProgramEndedFirst() async throws {
    let child = try shell("echo one; exit 7")
    await #expect(throws: ChildProcessError(message: "sh ended with 7 before it wrote what was waited for")) {
      _ = try await child.line(of: .output, within: .seconds(150)) { $0 == "two" }
    }
  }

  @Test func givesUpAfterTheTime() async throws {
    let child = try shell("exec sleep 3600")
    await #expect(throws: ChildProcessError(message: "sh did not write what was waited for")) {
      _ = try await child.line(of: .output, within: .milliseconds(10))
    }
    child.send(signal: SIGKILL)
    #expect(await child.ending().code == 128 + SIGKILL)
    child.send(signal: SIGKILL)
  }

  @Test func aStubbornProgramIsEnded() async throws {
    let child = try shell("trap '' TERM; echo ready; while :; do sleep 1; done")
    _ = try await child.line(of: .output, within: .seconds(150))
    #expect(await child.stop(grace: .milliseconds(10)).code == 128 + SIGKILL)
  }

  @Test func setsTheEnvironmentAndTheSignals() async throws {
    let ending = await
      (try shell("echo $KIZUNA_CHILD; kill -TERM $$; echo survived", environment: ["KIZUNA_CHILD": "x y"]))
      .ending()
    #expect(ending == .init(code: 128 + SIGTERM, output: ["x y"], errors: []))
  }

  @Test func takesMuchOutput() async throws {
    let ending = await (try shell("i=0; while [ $i -lt 20000 ]; do echo line $i; echo e >&2; i=$((i+1)); done"))
      .ending()
    #expect(ending.output.count == 20000)
    #expect(ending.errors.count == 20000)
  }

  @Test func saysWhyItCannotStart() {
    #expect(throws: HostFileError(path: "/nonexistent/x", code: ENOENT)) {
      try ChildProcess(executable: "/nonexistent/x", arguments: [])
    }
  }
}
