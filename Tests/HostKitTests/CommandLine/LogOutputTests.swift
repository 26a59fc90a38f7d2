import Glibc
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

  @Test func writesOnlyWhatIsImportantEnough() throws {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let log = LogOutput.log(minimum: .warning, format: .text, descriptor: ends[1])
    log.info("hidden")
    log.warning("shown")
    log.error("shown.too", ["n": 1])
    close(ends[1])
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(ends[0], &bytes, bytes.count)
    close(ends[0])
    let lines = String(decoding: bytes[0..<count], as: UTF8.self).split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines[0].hasSuffix("warning shown"))
    #expect(lines[1].hasSuffix("error shown.too n=1"))
  }

  @Test func theOptionsChooseLevelAndFormat() throws {
    let command = CommandSpecification(invocation: "t", summary: "", options: LogOutput.options)
    #expect(try LogOutput.log(from: Arguments(parsing: ["--log-level", "debug"], for: command)).minimum == .debug)
    #expect(try LogOutput.log(from: Arguments(parsing: [], for: command)).minimum == .info)
    #expect(throws: UsageError.self) { try Arguments(parsing: ["--log-format", "xml"], for: command) }
  }
}
