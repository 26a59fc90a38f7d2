import HostKit
import Testing

@Suite struct UsageTests {
  @Test(arguments: [
    ["--help"], ["run", "--help"], ["sync", "--help"], ["listen", "--help"], ["status", "--help"], ["bench", "--help"],
    ["doctor", "--help"], ["provision", "--help"],
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
    (["run", "a.json"], "kizuna-doorbell: unexpected argument \"a.json\"; did you mean --config a.json?"),
    (["run", "json"], "kizuna-doorbell: unexpected argument \"json\"; options start with --"),
    (["retry"], "kizuna-doorbell: unknown command \"retry\"; did you mean \"outbox retry\"?"),
    (["help", "rum"], "kizuna-doorbell: unknown command \"rum\"; did you mean \"run\"?"),
    (
      ["listen", "--url", "http://127.0.0.1:1", "--table", "a"],
      "kizuna-doorbell: --publishable-key is missing: --publishable-key KEY, or --publishable-key-file FILE"
    ),
    (
      [
        "listen", "--url", "http://127.0.0.1:1", "--publishable-key", "k", "--publishable-key-file", "f", "--table",
        "a",
      ],
      "kizuna-doorbell: --publishable-key and --publishable-key-file exclude each other"
    ),
    (
      [
        "listen", "--url", "http://127.0.0.1:1", "--publishable-key", "k", "--access-token-file", "/none", "--table",
        "a",
      ],
      "kizuna-doorbell: --access-token-file: the secret file \"/none\" cannot be read: No such file or directory"
    ),
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
    (["bench", "wites"], "kizuna-doorbell: unknown command \"bench wites\"; did you mean \"bench writes\"?"),
    (["bench", "7"], "kizuna-doorbell: unexpected argument \"7\"; options start with --"),
    (["bench", "--rings", "0"], "kizuna-doorbell: --rings must be a whole number from 1 to 100000"),
  ]

  @Test(arguments: mistakes)
  func namesTheMistake(arguments: [String], sentence: String) async throws {
    let ending = await (try ChildProcess(executable: Binaries.doorbell, arguments: arguments)).ending()
    #expect(ending.code == ExitCode.usage.rawValue)
    #expect(ending.errors == [sentence])
    #expect(ending.output.isEmpty)
  }

  private static let helps: [([String], [String], [String])] = [
    (["help", "run"], ["usage: kizuna-doorbell run --config FILE [options]"], []),
    (["help", "outbox"], ["  outbox list ", "  outbox retry "], ["  run "]),
    (["outbox", "--help"], ["  outbox list ", "  outbox retry "], ["  run "]),
    (["capture", "-h"], ["  capture off "], ["  run "]),
    (["help", "outbox", "list"], ["usage: kizuna-doorbell outbox list --config FILE [options]"], []),
    (["listen", "--help"], ["usage: kizuna-doorbell listen [options]"], []),
    (["--help"], ["  run ", "Exit codes:", "  130  "], []),
  ]

  @Test(arguments: helps)
  func showsTheHelpThatIsAskedFor(arguments: [String], lines: [String], without: [String]) async throws {
    let ending = await (try ChildProcess(executable: Binaries.doorbell, arguments: arguments)).ending()
    #expect(ending.code == ExitCode.ok.rawValue)
    for line in lines { #expect(ending.output.contains { $0.hasPrefix(line) }, "\(line): \(ending.output)") }
    for line in without { #expect(!ending.output.contains { $0.hasPrefix(line) }, "\(line)") }
  }

  @Test func tellsTheRelease() async throws {
    #expect(try await Binaries.doorbell("--version").output == ["kizuna-doorbell \(Release.version)"])
  }

  /// A program that reads the events finds nothing else on standard error, also at the end.
  @Test func aFailureIsAnEventOfTheLog() async throws {
    try await Scratch.with { scratch in
      let file = try scratch.write("a.json", #"{"url": "ftp://x", "tabels": {}}"#)
      for arguments in [["run"], ["sync"], ["status"], ["outbox", "list"]] {
        let process = try ChildProcess(
          executable: Binaries.doorbell, arguments: arguments + ["--config", file, "--log-format", "json"])
        let ending = await process.ending()
        #expect(ending.code == ExitCode.configuration.rawValue && ending.errors.count > 2)
        for line in ending.errors {
          let event = try JSONValue(parsing: line)
          #expect(event["event"] == "command.failed" && event["level"] == "error" && event["code"] == 4)
          #expect(event["text"]?.stringValue?.hasPrefix("\(file):1:") == true, "\(line)")
        }
      }
    }
  }
}
