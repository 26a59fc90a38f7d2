import Glibc
import HostKit
import Testing

/// What people get wrong with the development server: one sentence, the right exit code, nothing served.
@Suite struct StackUsageTests {
  private func refuses(_ arguments: [String], _ code: ExitCode, saying words: String...) async throws {
    let ending = await (try ChildProcess(executable: Binaries.localStack, arguments: arguments)).ending()
    #expect(ending.code == code.rawValue, "\(arguments): \(ending.errors)")
    #expect(ending.output.isEmpty)
    #expect(ending.errors.count == 1, "\(arguments): \(ending.errors)")
    #expect(ending.errors.first?.hasPrefix("kizuna-localstack: ") == true)
    for word in words { #expect(ending.errors.first?.contains(word) == true, "\(arguments): \(ending.errors)") }
  }

  private static let mistakes: [([String], String)] = [
    (["serve"], "unexpected argument \"serve\""), (["--"], "nothing but options"),
    (["-p", "1"], "options start with --"),
    (["--prot", "1"], "did you mean --port?"), (["--port", "-1"], "from 0 to 65535"),
    (["--port", "65536"], "from 0 to 65535"), (["--port", "80x"], "from 0 to 65535"),
    (["--port", ""], "must not be empty"),
    (["--port", "1", "--port", "2"], "given twice"), (["--host="], "must not be empty"),
    (["--jwt-secret", ""], "must not be empty"), (["--jwt-secret", "a\nb"], "line break"),
    (["--table", "todos", "--table", "todos"], "given twice"),
    (["--table", "todos", "--table", "todos:owner_id"], "names todos twice"),
    (["--table", "t:id"], "names the row, not its owner"), (["--table", "T-x"], "NAME:OWNERCOLUMN"),
    (["--table", "a:b:c"], "NAME:OWNERCOLUMN"), (["--user", "ann"], "EMAIL:PASSWORD"),
    (["--user", "@b:x"], "EMAIL:PASSWORD"), (["--user", "a@b:x", "--user", "A@B:y"], "a user is given twice"),
    (["--user", "a@b:x", "--user", "a@b:x"], "given twice"), (["--tls-cert", "a.pem"], "belong together"),
    (["--log-level", "loud"], "must be one of"), (["--no-scaffolding"], "belongs to --postgres"),
    (["--postgres", "postgresql://localhost/x", "--directory", "d"], "exclude each other"),
  ]

  @Test(arguments: mistakes)
  func namesTheMistake(arguments: [String], word: String) async throws {
    try await refuses(arguments, .usage, saying: word)
  }

  @Test func aDatabaseThatCannotBeServed() async throws {
    #if Postgres
      let address = "postgresql://me:s3cret@127.0.0.1:1/db"
      try await refuses(["--postgres", address], .unreachable, saying: "127.0.0.1")
      try await refuses(["--postgres", "mysql://me:s3cret@localhost/db"], .configuration, saying: "postgresql://")
      for arguments in [["--postgres", address], ["--postgres", "postgresql://me:s3cret@localhost:x/db"]] {
        let ending = await (try ChildProcess(executable: Binaries.localStack, arguments: arguments)).ending()
        #expect(!ending.errors.joined().contains("s3cret"))
      }
    #else
      try await refuses(["--postgres", "postgresql://localhost/db"], .usage, saying: "--traits Postgres", "libpq-dev")
    #endif
    try await refuses(["--postgres", "env:KIZUNA_NOT_SET"], .configuration, saying: "KIZUNA_NOT_SET")
  }

  @Test func aPasswordGivenTwiceIsNotShown() async throws {
    let ending = await
      (try ChildProcess(
        executable: Binaries.localStack, arguments: ["--user", "a@b:s3cret", "--user", "a@b:s3cret"])).ending()
    #expect(!ending.errors.joined().contains("s3cret"))
  }

  @Test(arguments: ["nobody.invalid", "256.1.1.1", "192.0.2.1", "-1"])
  func aHostThatIsNotThisMachine(host: String) async throws {
    try await refuses(["--host", host, "--table", "todos"], .configuration, saying: host)
  }

  @Test func filesThatCannotBeRead() async throws {
    try await Scratch.with { scratch in
      let pipe = scratch.path + "/pipe"
      #expect(mkfifo(pipe, 0o600) == 0)
      let text = try scratch.write("cert.pem", "not a certificate")
      for (certificate, key) in [
        ("/nonexistent.pem", text), (text, "/nonexistent.pem"), (pipe, text), (text, pipe), ("/dev/zero", text),
        (scratch.path, text), (text, text),
      ] {
        try await refuses(
          ["--table", "todos", "--tls-cert", certificate, "--tls-key", key], .configuration, saying: "certificate")
      }
      try await refuses(["--config", pipe], .configuration, saying: "it is a pipe")
      try await refuses(["--config", scratch.path + "/none"], .configuration, saying: "No such file")
      try await refuses(["--table", "todos", "--directory", text], .database, saying: text)
    }
  }

  @Test func everyMistakeOfAConfigurationHasItsPlace() async throws {
    try await Scratch.with { scratch in
      let text = """
        {
          "tables": {"todos": {"bucket": {"owner": "id"}}},
          "jwtSecret": "a\\nb",
          "port": 70000,
          "users": {"nobody": "x"},
        }
        """
      let file = try scratch.write("stack.json", text)
      let ending = await (try ChildProcess(executable: Binaries.localStack, arguments: ["--config", file])).ending()
      #expect(ending.code == ExitCode.configuration.rawValue)
      let places = ["2:", "3:", "4:", "5:"]
      #expect(ending.errors.count == places.count, "\(ending.errors)")
      for (line, place) in zip(ending.errors, places) {
        #expect(line.hasPrefix("kizuna-localstack: \(file):\(place)"), "\(line)")
      }
    }
  }
}
