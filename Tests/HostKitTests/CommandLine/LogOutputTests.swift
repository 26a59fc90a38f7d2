import Testing

@testable import HostKit

@Suite struct LogOutputTests {
  private let fields: [(String, JSONValue)] = [("table", "todos"), ("rows", 3), ("why", "two\nlines"), ("next", nil)]

  @Test func textIsOneLineAnEvent() {
    let line = LogOutput.render(.text, .info, "sync.done", fields, milliseconds: 0)
    #expect(line == "1970-01-01T00:00:00.000Z info sync.done table=todos rows=3 why=\"two\\nlines\" next=null\n")
  }

  @Test func jsonIsOneObjectALine() throws {
    let line = LogOutput.render(.json, .warning, "sync.done", fields, milliseconds: 0)
    #expect(
      line == #"{"time":"1970-01-01T00:00:00.000Z","level":"warning","event":"sync.done","#
        + #""table":"todos","rows":3,"why":"two\nlines","next":null}"# + "\n")
    #expect(try JSONValue(parsing: line)["rows"] == 3)
  }

  @Test func writesOnlyWhatIsImportantEnough() async {
    let pipe = TestPipe()
    let queue = OutputQueue(descriptor: pipe.writer, name: "test-log")
    let log = LogOutput.log(minimum: .warning, format: .text, to: queue)
    log.info("hidden")
    log.warning("shown")
    log.error("shown.too", ["n": 1])
    await queue.idle()
    let lines = pipe.lines { $0.contains("shown.too") }
    #expect(lines.count == 2)
    #expect(lines[0].hasSuffix("warning shown"))
    #expect(lines[1].hasSuffix("error shown.too n=1"))
  }

  /// Nobody reads for a while: the log goes on, and says what is missing where it is missing.
  @Test func countsWhatNobodyRead() async throws {
    let pipe = TestPipe()
    let log = LogOutput.log(
      minimum: .debug, format: .json,
      to: OutputQueue(descriptor: pipe.writer, name: "test-log", limits: .init(lines: 10)))
    let count = 5000
    for index in 0..<count { log.debug("test.event", ["index": .int(index)]) }
    var next = 0
    var notices = 0
    for line in pipe.lines(until: { $0.contains("\"index\":\(count - 1)}") }) {
      let event = try JSONValue(parsing: line)
      if event["event"] == "log.dropped" {
        #expect(event["level"] == "warning")
        next += try #require(event["count"]?.intValue)
        notices += 1
      } else {
        #expect(event["index"] == .int(next))
        next += 1
      }
    }
    #expect(next == count)
    #expect(notices > 0)
  }

  @Test func theOptionsChooseLevelAndFormat() throws {
    let command = CommandSpecification(invocation: "t", summary: "", options: LogOutput.options)
    #expect(try LogOutput.log(from: Arguments(parsing: ["--log-level", "debug"], for: command)).minimum == .debug)
    #expect(try LogOutput.log(from: Arguments(parsing: [], for: command)).minimum == .info)
    #expect(throws: UsageError.self) { try Arguments(parsing: ["--log-format", "xml"], for: command) }
  }
}
