import HostKit
import Testing

@Suite struct UsageTests {
  @Test(arguments: [
    ["--help"], ["run", "--help"], ["sync", "--help"], ["listen", "--help"], ["status", "--help"], ["bench", "--help"],
    ["doctor", "--help"],
    ["bench", "ingest", "--help"], ["bench", "writes", "--help"],
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
    (["sync", "--config", ""], "kizuna-doorbell: --config must not be empty: --config FILE"),
    (["sync", "--config=a", "--config", "b"], "kizuna-doorbell: --config is given twice; keep one"),
    (["status", "--json", "--json"], "kizuna-doorbell: --json is given twice; keep one"),
    (["status", "--json=1"], "kizuna-doorbell: --json takes no value"),
    (["run", "--", "x"], "kizuna-doorbell: unexpected argument \"--\"; nothing but options is taken here"),
    (["run", "a.json"], "kizuna-doorbell: unexpected argument \"a.json\"; options start with --"),
    (["--config", "x"], "kizuna-doorbell: unknown command \"--config\"; kizuna-doorbell --help lists them"),
    (
      ["listen", "--url", "http://127.0.0.1:1", "--publishable-key", "k", "--table", "T-x"],
      "kizuna-doorbell: --table must be a table's name, of a to z, 0 to 9 and _; \"T-x\" is not"
    ),
    (
      ["listen", "--url", "http://127.0.0.1:1", "--publishable-key", "k", "--table", "a", "--table", "a"],
      "kizuna-doorbell: --table is given twice with the same value"
    ),
    (
      ["listen", "--url", "http://127.0.0.1:1", "--publishable-key", "a b", "--table", "a"],
      "kizuna-doorbell: --publishable-key must not hold a space"
    ),
    (
      ["listen", "--url", "http://127.0.0.1:1", "--publishable-key", "k", "--access-token", "a\nb", "--table", "a"],
      "kizuna-doorbell: --access-token must not hold a line break"
    ),
    (
      ["listen", "--url", "", "--publishable-key", "k", "--table", "a"],
      "kizuna-doorbell: --url must not be empty: --url URL"
    ),
    (["bench", "--rings", "-5"], "kizuna-doorbell: --rings must be a whole number from 1 to 100000"),
    (["bench", "ingest", "--rows", "0"], "kizuna-doorbell: --rows must be a whole number from 1 to 10000000"),
    (["bench", "ingest", "--repeats", "x"], "kizuna-doorbell: --repeats must be a whole number from 1 to 100"),
    (["bench", "writes", "--queued", "-1"], "kizuna-doorbell: --queued must be a whole number from 1 to 1000000"),
    (["bench", "ingest", "--rings", "1"], "kizuna-doorbell: unknown option --rings; --help lists the options"),
    (["bench", "wites"], "kizuna-doorbell: unexpected argument \"wites\"; options start with --"),
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
