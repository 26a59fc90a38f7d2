import HostKit
import Testing

private let command = CommandSpecification(
  invocation: "tool bench", summary: "Measures.",
  options: [
    .value("config", "FILE", "the configuration"), .value("table", "NAME", "a table", repeatable: true),
    .value("rings", "N", "how many"), .flag("json", "print JSON"), .choice("vsn", ["1.0.0", "2.0.0"], "the protocol"),
  ])

@Suite struct ArgumentsTests {
  @Test func readsBothSpellingsAndRepeatedOptions() throws {
    let arguments = try Arguments(
      parsing: ["--config", "a.json", "--table=todos", "--json", "--table", "notes", "--rings=-5", "--vsn=2.0.0"],
      for: command)
    #expect(arguments.value("config") == "a.json")
    #expect(arguments.values("table") == ["todos", "notes"])
    #expect(arguments.flag("json"))
    #expect(arguments.value("vsn") == "2.0.0")
    #expect(arguments.value("rings") == "-5")
    #expect(!arguments.wantsHelp)
  }

  @Test func aValueMayHoldWhatLooksLikeAnOption() throws {
    let arguments = try Arguments(
      parsing: ["--table=a=b", "--table=--c", "--config", "-h", "--rings=-h"], for: command)
    #expect(arguments.values("table") == ["a=b", "--c"])
    #expect(arguments.value("config") == "-h")
    #expect(arguments.value("rings") == "-h")
    #expect(!arguments.wantsHelp)
    for asking in [
      ["-h"], ["--json", "-h"], ["--config", "a", "-h"], ["--config=a", "-h"], ["--config", "-h", "-h"],
    ] {
      #expect(try Arguments(parsing: asking, for: command).wantsHelp)
    }
  }

  @Test(arguments: [
    (["--cofnig", "x"], "unknown option --cofnig; did you mean --config?"),
    (["--zzz"], "unknown option --zzz; --help lists the options"),
    (["file"], "unexpected argument \"file\"; options start with --"),
    (["-j"], "unexpected argument \"-j\"; options start with --"),
    (["--"], "unexpected argument \"--\"; nothing but options is taken here"),
    (["--config", ""], "--config must not be empty: --config FILE"),
    (["--config="], "--config must not be empty: --config FILE"),
    (["--config", "a\nb"], "--config must not hold a line break"),
    (["--table", "a\u{7F}"], "--table must not hold control characters"),
    (["--table", "a", "--table=a"], "--table is given twice with the same value"),
    (["--config", "a", "--config", "b"], "--config is given twice; keep one"),
    (["--config", "a", "b"], "unexpected argument \"b\"; options start with --"),
    (["-config", "a"], "unexpected argument \"-config\"; options start with --"),
    (["--config"], "--config needs a value: --config FILE"),
    (["--config", "--json"], "--config needs a value: --config FILE"),
    (["--json=yes"], "--json takes no value"), (["--json", "--json"], "--json is given twice; keep one"),
    (["--vsn", "3"], "--vsn must be one of 1.0.0, 2.0.0"),
  ])
  func refuses(arguments: [String], message: String) {
    #expect(throws: UsageError(message)) { try Arguments(parsing: arguments, for: command) }
  }

  @Test func checksNumbersAndMissingOptions() throws {
    let arguments = try Arguments(parsing: ["--rings", "ten"], for: command)
    #expect(throws: UsageError("--rings must be a whole number from 1 to 100")) {
      try arguments.integer("rings", in: 1...100)
    }
    #expect(throws: UsageError("--config is missing: --config FILE")) { try arguments.required("config") }
    #expect(try Arguments(parsing: ["--rings", "10"], for: command).integer("rings", in: 1...100) == 10)
    for wrong in ["-1", "0", "101", "1.5", "1e1", " 5", "0x5", "9223372036854775808", "٣"] {
      #expect(throws: UsageError("--rings must be a whole number from 1 to 100"), "\(wrong)") {
        try Arguments(parsing: ["--rings", wrong], for: command).integer("rings", in: 1...100)
      }
    }
    #expect(try Arguments(parsing: [], for: command).integer("rings", in: 1...100) == nil)
  }

  @Test func helpWinsOverEverythingElse() throws {
    #expect(try Arguments(parsing: ["--nonsense", "--help"], for: command).wantsHelp)
    for expected in ["tool bench [options]", "--table NAME", "(may be repeated)", "--vsn 1.0.0|2.0.0", "--help"] {
      #expect(command.help.contains(expected))
    }
  }
}
