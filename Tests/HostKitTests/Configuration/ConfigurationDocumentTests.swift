import Glibc
import HostKit
import Testing

private enum Mode: String, CaseIterable { case readWrite = "read-write", pullOnly = "pull-only" }

@Suite struct ConfigurationDocumentTests {
  private func problems(_ text: String, _ body: (ConfigurationObject) -> Int?) -> [String] {
    do throws(ConfigurationError) {
      _ = try ConfigurationDocument.decode(file: "f.json", text: text, body)
      return []
    } catch { return error.problems.map(\.description) }
  }

  @Test func decodesEveryKind() throws {
    let text = """
      {"s": "x", "n": 3, "b": true, "d": 1.5, "m": "pull-only", "l": ["a", "b"], "o": {"k": {"v": 1}, "j": {"v": 2}},
       "p": "data/x.db", "absent": null}
      """
    let (value, warnings) = try ConfigurationDocument.decode(file: "/etc/app/f.json", text: text) { root -> [String]? in
      #expect(root.string("s") == "x")
      #expect(root.integer("n", in: 1...5) == 3)
      #expect(root.bool("b") == true)
      #expect(root.seconds("d", in: 0...60) == 1_500_000_000)
      #expect(root.choice("m", of: Mode.self) == .pullOnly)
      #expect(root.path("p") == "/etc/app/data/x.db")
      #expect(root.string("absent") == nil)
      let map = root.object("o") { $0.members { _, member in member.integer("v", in: 0...9) } }
      #expect(map == ["k": 1, "j": 2])
      return root.strings("l")
    }
    #expect(value == ["a", "b"])
    #expect(warnings.isEmpty)
  }

  @Test func aPathHoldsNoNUL() {
    let found = problems(#"{"p": "a\u0000.db", "s": {"file": "a\u0000b"}}"#) { root in
      #expect(root.path("p") == nil)
      #expect(root.secret("s") == nil)
      return 1
    }
    #expect(
      found.sorted() == [
        "1:35: s.file: a path cannot hold a NUL character", "1:7: p: a path cannot hold a NUL character",
      ])
  }

  @Test func reportsEverythingAtOnceInTheOrderOfTheFile() {
    let text = """
      {
        "urll": "x",
        "n": 30,
        "mode": "pull-onyl",
        "inner": {"secnds": 1, "flag": "yes"},
        "list": ["a", 1, ""],
        "zzz": 1,
      }
      """
    let found = problems(text) { root in
      _ = root.string("url", required: "the address")
      _ = root.integer("n", in: 1...20)
      _ = root.choice("mode", of: Mode.self)
      _ = root.object("inner") { inner -> Int? in
        _ = inner.seconds("seconds", in: 1...2)
        _ = inner.bool("flag")
        return 1
      }
      _ = root.strings("list")
      return nil
    }
    #expect(
      found == [
        "1:1: \"url\" is missing; add it: the address", "2:3: urll: unknown key; did you mean \"url\"?",
        "3:8: n: must be a whole number from 1 to 20",
        "4:11: mode: must be one of \"read-write\", \"pull-only\"; did you mean \"pull-only\"?",
        "5:13: inner.secnds: unknown key; did you mean \"seconds\"?",
        "5:34: inner.flag: true or false is expected here, not a string",
        "6:17: list.1: a string is expected here", "6:20: list.2: a string is expected here",
        "7:3: zzz: unknown key; known are url, n, mode, inner, list",
      ])
  }

  @Test func anErrorNamesTheFileOnEachLine() {
    #expect {
      _ = try ConfigurationDocument.decode(file: "gw.json", text: "[]") { _ -> Int? in nil }
    } throws: { error in
      "\(error)" == "gw.json:1:1: an object { … } is expected here, not an array"
    }
  }

  @Test func aMissingFileIsAProblemToo() {
    #expect {
      _ = try ConfigurationDocument.decode(file: "/nonexistent.json") { _ -> Int? in nil }
    } throws: { error in
      "\(error)".hasPrefix(
        "/nonexistent.json: the configuration cannot be read: No such file or directory; give --config")
    }
  }

  @Test func readsSecretsFromAllThreePlaces() throws {
    try withTemporaryDirectory { folder in
      try write(Array("from file\n".utf8), to: folder + "/token")
      setenv("KIZUNA_TEST_SECRET", " from env ", 1)
      defer { unsetenv("KIZUNA_TEST_SECRET") }
      let text = #"{"a": "plain", "b": {"file": "token"}, "c": {"env": "KIZUNA_TEST_SECRET"}, "dFile": "token"}"#
      try write(Array(text.utf8), to: folder + "/f.json")
      let (values, warnings) = try ConfigurationDocument.decode(file: folder + "/f.json") { root -> [String]? in
        [root.secret("a"), root.secret("b"), root.secret("c"), root.secretFile("dFile")].compactMap { $0?.value }
      }
      #expect(values == ["plain", "from file", "from env", "from file"])
      #expect(warnings.isEmpty)
    }
  }

  @Test func warnsOfSecretsThatEveryoneCanRead() throws {
    try withTemporaryDirectory { folder in
      try write(Array("s3cret".utf8), to: folder + "/token", mode: 0o644)
      try write(
        Array(#"{"a": "s3cret", "b": {"file": "token"}, "c": "public"}"#.utf8), to: folder + "/f.json", mode: 0o644)
      let (_, warnings) = try ConfigurationDocument.decode(file: folder + "/f.json") { root -> Int? in
        _ = root.secret("a")
        _ = root.secret("b")
        _ = root.secret("c", isPublic: true)
        return 1
      }
      #expect(warnings.count == 2)
      #expect(warnings[0].description.hasPrefix("1:7: a: every user of this host can read this secret"))
      #expect(warnings[1].description.contains("\(folder)/token; chmod 600 it"))
      #expect(warnings.allSatisfy { !$0.description.contains("s3cret") })
    }
  }

  @Test(arguments: [
    (
      #"{"k": {"file": "/nonexistent/x"}}"#,
      "1:16: k.file: the secret file \"/nonexistent/x\" cannot be read: No such file or directory"
    ),
    (#"{"k": {"env": "KIZUNA_TEST_UNSET"}}"#, "1:15: k.env: the environment variable KIZUNA_TEST_UNSET is not set"),
    (#"{"k": {}}"#, #"1:7: k: give either {"file": path} or {"env": name}"#),
    (#"{"k": {"fiel": "x"}}"#, #"1:7: k: give either {"file": path} or {"env": name}"#),
    (#"{"k": 7}"#, #"1:7: k: a string, {"file": path} or {"env": name} is expected here, not a number"#),
    (#"{"k": "  "}"#, "1:7: k: must not be empty"),
  ])
  func refusesSecretsItCannotHave(text: String, problem: String) {
    let found = problems(text) { root in
      _ = root.secret("k")
      return nil
    }
    #expect(found.first == problem)
  }

  /// A line break in a header ends the header; the mistake is named where it was made.
  @Test func keysAndTokensHoldNoControlCharacters() throws {
    try withTemporaryDirectory { folder in
      let broken = [
        ("a\\nb", "a\nb", "a line break"), ("a\\r\\nX-Other: 1", "a\r\nX-Other: 1", "a line break"),
        ("a\\u0000b", "a\0b", "control characters"), ("a\\u0085b", "a\u{85}b", "control characters"),
        ("a\\tb", "a\tb", "control characters"), ("a b", "a b", "a space"), ("ä", "ä", "ASCII"),
      ]
      for (literal, raw, words) in broken {
        try write(Array(raw.utf8), to: folder + "/secret")
        setenv("KIZUNA_TEST_BROKEN", raw.replacing("\0", with: "\u{1}"), 1)
        defer { unsetenv("KIZUNA_TEST_BROKEN") }
        let places = [
          (#"{"k": "\#(literal)"}"#, "1:7: k: "), (#"{"k": {"file": "\#(folder)/secret"}}"#, "1:16: k.file: "),
          (#"{"k": {"env": "KIZUNA_TEST_BROKEN"}}"#, "1:15: k.env: "),
        ]
        for (text, place) in places {
          let found = problems(text) { root in
            _ = root.secret("k", form: .token)
            return nil
          }
          #expect(found.count == 1)
          #expect(found.first?.hasPrefix(place) == true && found.first?.contains(words) == true, "\(text): \(found)")
        }
        // A password may have spaces and any letters.
        let asText = problems(places[0].0) { root in
          root.secret("k", form: .text).map { _ in 1 }
        }
        #expect(asText.isEmpty == ["a b", "ä"].contains(literal), "\(asText)")
      }
    }
  }

  @Test func textsHoldNoControlCharacters() {
    let found = problems(#"{"s": "a\nb", "p": "a.db\u0000.txt", "l": ["x\t"]}"#) { root in
      _ = root.string("s")
      _ = root.path("p")
      _ = root.strings("l")
      return nil
    }
    #expect(
      found == [
        "1:7: s: must not hold a line break", "1:20: p: a path cannot hold a NUL character",
        "1:44: l.0: must not hold control characters",
      ])
  }

  @Test func aSecretThatIsReplacedIsCheckedAgain() throws {
    try withTemporaryDirectory { folder in
      try write(Array("good\n".utf8), to: folder + "/secret")
      let secret = try ConfigurationSecret(reading: .file(path: folder + "/secret"), form: .token)
      #expect(try secret.current() == "good")
      try write(Array("two\nlines".utf8), to: folder + "/secret")
      #expect(throws: ConfigurationSecretError.self) { try secret.current() }
    }
  }

  @Test func aSecretDoesNotShow() throws {
    let secret = ConfigurationSecret(literal: "hunter2")
    var dumped = ""
    dump([secret], to: &dumped)
    #expect(!"\(secret) \(String(reflecting: secret)) \(dumped)".contains("hunter2"))
    #expect(try secret.current() == "hunter2")
  }
}
