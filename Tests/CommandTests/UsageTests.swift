import HostKit
import Testing

@Suite struct UsageTests {
  @Test(arguments: [
    ["--help"], ["run", "--help"], ["sync", "--help"], ["listen", "--help"], ["status", "--help"], ["bench", "--help"],
  ])
  func explainsItself(arguments: [String]) async throws {
    let ending = await (try ChildProcess(executable: Binaries.doorbell, arguments: arguments)).ending()
    #expect(ending.code == ExitCode.ok.rawValue)
    #expect(ending.output.contains { $0.hasPrefix("usage: kizuna-doorbell") })
    #expect(ending.errors.isEmpty)
  }

  private static let mistakes: [([String], String)] = [
    ([], "kizuna-doorbell: a command is missing; kizuna-doorbell --help lists them"),
    (["rum"], "kizuna-doorbell: unknown command \"rum\"; did you mean \"run\"?"),
    (["run"], "kizuna-doorbell: --config is missing: --config FILE"),
    (["sync", "--confg", "x"], "kizuna-doorbell: unknown option --confg; did you mean --config?"),
    (["listen", "--vsn", "3.0.0"], "kizuna-doorbell: --vsn must be one of 1.0.0, 2.0.0"),
    (["bench", "--rings", "0"], "kizuna-doorbell: --rings must be a whole number from 1 to 100000"),
  ]

  @Test(arguments: mistakes)
  func namesTheMistake(arguments: [String], sentence: String) async throws {
    let ending = await (try ChildProcess(executable: Binaries.doorbell, arguments: arguments)).ending()
    #expect(ending.code == ExitCode.usage.rawValue)
    #expect(ending.errors == [sentence])
    #expect(ending.output.isEmpty)
  }
}
