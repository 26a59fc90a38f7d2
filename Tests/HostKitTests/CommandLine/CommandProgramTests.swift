import HostKit
import Testing

@Suite struct CommandProgramTests {
  private func program(_ run: @escaping @Sendable (Arguments) async throws -> ExitCode) -> CommandProgram {
    CommandProgram(
      name: "tool", summary: "A tool.",
      verbs: [
        Command(.init(invocation: "tool run", summary: "Runs.", options: [.flag("json", "print JSON")]), run: run)
      ],
      explain: { _ in nil })
  }

  @Test func runsTheVerb() async {
    let ran = Locked(false)
    let code = await program { arguments in
      ran.withLock { $0 = arguments.flag("json") }
      return .workLeft
    }.run(["run", "--json"])
    #expect(code == .workLeft)
    #expect(ran.withLock { $0 })
  }

  @Test(arguments: [["rnu"], [], ["run", "--jsn"], ["run", "extra"]])
  func wrongUsageEndsWith2(arguments: [String]) async {
    let code = await program { _ in
      Issue.record("ran")
      return .ok
    }.run(arguments)
    #expect(code == .usage)
  }

  @Test(arguments: [["--help"], ["help"], ["-h"], ["run", "--help"]])
  func helpEndsWith0(arguments: [String]) async {
    #expect(await program { _ in .failure }.run(arguments) == .ok)
  }

  @Test func errorsChooseTheExitCode() async {
    struct Other: Error {}
    #expect(await program { _ in throw CommandFailure(.locked, "held") }.run(["run"]) == .locked)
    #expect(await program { _ in throw ConfigurationError(file: "f", problems: []) }.run(["run"]) == .configuration)
    #expect(await program { _ in throw CancellationError() }.run(["run"]) == .interrupted)
    #expect(await program { _ in throw Other() }.run(["run"]) == .failure)
    let explained = CommandProgram(
      Command(.init(invocation: "tool", summary: "", options: [])) { _ in throw Other() },
      explain: { $0 is Other ? CommandFailure(.database, "disk") : nil })
    #expect(await explained.run([]) == .database)
  }
}
