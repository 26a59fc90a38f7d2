/// Writes log events to standard error, one line each, each line with one `write`. Nobody who logs waits for the reader;
/// while too much waits for it, the oldest lines are dropped, and `log.dropped` counts them.
public struct LogOutput: Sendable {
  public enum Format: String, Sendable, CaseIterable { case text, json }

  /// The options that the commands share.
  public static let options: [OptionSpecification] = [
    .choice("log-level", HostLog.Level.allCases.map(\.rawValue), "least important events to log; default info"),
    .choice("log-format", Format.allCases.map(\.rawValue), "how events are written to standard error; default text"),
  ]

  /// The log that the shared options ask for, on standard error.
  public static func log(from arguments: Arguments) -> HostLog {
    log(
      minimum: arguments.value("log-level").flatMap(HostLog.Level.init) ?? .info,
      format: arguments.value("log-format").flatMap(Format.init) ?? .text)
  }

  /// A log on standard error, whose times are the clock's.
  public static func log(
    minimum: HostLog.Level, format: Format, clock: any HostClock = SystemClock.shared
  ) -> HostLog {
    log(minimum: minimum, format: format, to: StandardStreams.errors, clock: clock)
  }

  static func log(
    minimum: HostLog.Level, format: Format, to output: OutputQueue, clock: any HostClock = SystemClock.shared
  ) -> HostLog {
    HostLog(minimum: minimum) { level, event, fields in
      let milliseconds = clock.wallMilliseconds
      output.add(event: render(format, level, event, fields, milliseconds: milliseconds)) { dropped in
        render(format, .warning, "log.dropped", [("count", .int(dropped))], milliseconds: milliseconds)
      }
    }
  }

  /// Tells on standard error why a command failed: as an event of the log where that is JSON, so that a program finds
  /// nothing else there, and as `program: sentence` for people.
  /// - Parameters:
  ///   - message: may have several lines; each is told by itself.
  ///   - arguments: nil while it is not known what was asked for.
  public static func printFailure(_ message: String, _ code: ExitCode, program: String, arguments: Arguments?) {
    let isJSON = arguments?.value("log-format") == Format.json.rawValue
    for line in message.split(separator: "\n").map(String.init) {
      // The one line that must not be dropped.
      StandardStreams.errors.add(
        result: isJSON
          ? render(
            .json, .error, "command.failed", [("code", .int(Int(code.rawValue))), ("text", .string(line))],
            milliseconds: SystemClock.shared.wallMilliseconds)
          : "\(program): \(line)\n")
    }
  }

  static func render(
    _ format: Format, _ level: HostLog.Level, _ event: String, _ fields: [(String, JSONValue)], milliseconds: Int64
  ) -> String {
    let time = UTCTimestamp.text(milliseconds: milliseconds)
    switch format {
    case .text:
      // JSON spelling keeps a value with spaces or line breaks on one line and unambiguous.
      let rest = fields.map { name, value in
        if case .string(let text) = value, isPlain(text) { return " \(name)=\(text)" }
        return " \(name)=\(JSONWriter.text(value))"
      }
      return "\(time) \(level.rawValue) \(event)\(rest.joined())\n"
    case .json:
      var writer = JSONWriter()
      let reserved: [(String, JSONValue)] = [
        ("time", .string(time)), ("level", .string(level.rawValue)), ("event", .string(event)),
      ]
      writer.raw("{")
      for (index, (name, value)) in (reserved + fields).enumerated() {
        if index > 0 { writer.raw(",") }
        writer.write(string: name)
        writer.raw(":")
        writer.write(value)
      }
      writer.raw("}\n")
      return String(decoding: writer.bytes, as: UTF8.self)
    }
  }

  private static func isPlain(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "=") }
  }
}
