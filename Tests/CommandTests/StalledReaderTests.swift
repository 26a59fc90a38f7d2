import Foundation
import Glibc
import HostKit
import Testing

/// A reader of the output that stalls holds up nothing: not the connection, not the replica, not the end.
@Suite struct StalledReaderTests {
  /// Longer than anything takes here; a process that waits for the reader is killed then.
  private static let patience: UInt64 = .seconds(30)

  private struct Place {
    let pipe: StalledPipe
    /// A configuration and its database.
    let file: String
    let database: String
    /// The same for another host.
    let otherFile: String
    let otherDatabase: String

    /// Rings.
    func writeRow() async throws {
      #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
      try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x')")
      #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
    }
  }

  private func withPlace(_ body: (Place) async throws -> Void) async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let database = scratch.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        let otherDatabase = scratch.path + "/b.db"
        let otherFile = try scratch.write("b.json", stack.configuration(database: otherDatabase))
        try await StalledPipe.with(scratch) { pipe in
          try await body(
            Place(
              pipe: pipe, file: file, database: database, otherFile: otherFile, otherDatabase: otherDatabase))
        }
      }
    }
  }

  /// `listen`, joined, with lines that nobody reads; one of them is a ring that a write has caused.
  private func listening(_ place: Place) async throws -> ChildProcess {
    let listen = try place.pipe.doorbell(1, "listen", "--config", place.file)
    _ = try await listen.line(of: .errors, within: .seconds(150)) { $0.contains("realtime.joined") }
    try await place.writeRow()
    return listen
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func listenEnds(signal: Int32) async throws {
    try await withPlace { place in
      let listen = try await listening(place)
      listen.send(signal: signal)
      #expect(await listen.ending(within: Self.patience).code == ExitCode.ok.rawValue)
    }
  }

  @Test func listenTellsEverythingWhenItIsReadAgain() async throws {
    try await withPlace { place in
      let listen = try await listening(place)
      let reader = try await place.pipe.reader()
      _ = try await reader.line(of: .output, within: .seconds(150)) { $0.contains("\"cause\":\"broadcast\"") }
      listen.send(signal: SIGTERM)
      #expect(await listen.ending(within: Self.patience).code == ExitCode.ok.rawValue)
      let events = try await place.pipe.lines(reader).map { try JSONValue(parsing: $0) }
      let causes = events.filter { $0["event"] == "ring" }.map { $0["cause"]?.stringValue }
      #expect(causes.first == "join")
      #expect(causes.contains("broadcast"))
      #expect(events.contains { $0["ready"] == true })
      #expect(!events.contains { $0["event"] == "dropped" })
    }
  }

  @Test(arguments: [false, true])
  func runServesAndEnds(readsAgain: Bool) async throws {
    try await withPlace { place in
      try await place.writeRow()
      let run = try place.pipe.doorbell(2, "run", "--config", place.file, "--log-level", "debug")
      try PlainSQL.run(place.database, "INSERT INTO todos(title) VALUES ('y')")
      try await eventually("the row on another host") {
        let other = try await Binaries.doorbell("sync", "--config", place.otherFile)
        #expect(other.code == ExitCode.ok.rawValue)
        return try PlainSQL.run(place.otherDatabase, "SELECT count(*) FROM todos WHERE title = 'y'") == ["1"]
      }
      let reader = readsAgain ? try await place.pipe.reader() : nil
      _ = try await reader?.line(of: .output, within: .seconds(150)) { $0.contains("gateway.ready") }
      run.send(signal: SIGTERM)
      #expect(await run.ending(within: Self.patience).code == ExitCode.ok.rawValue)
      guard let reader else { return }
      let lines = await place.pipe.lines(reader)
      #expect(lines.contains { $0.contains("gateway.started") })
      #expect(lines.last?.contains("gateway.stopped") == true, "\(lines.suffix(3))")
    }
  }

  /// Waits until the process has something for standard output.
  private func hasResult(_ process: ChildProcess) async throws {
    let tasks = "/proc/\(process.pid)/task"
    try await eventually("the thread that writes") {
      try FileManager.default.contentsOfDirectory(atPath: tasks).contains {
        // A thread may end in between.
        (try? String(contentsOfFile: "\(tasks)/\($0)/comm", encoding: .utf8)) == "kizuna-stdout\n"
      }
    }
  }

  /// A result is complete however late somebody reads it.
  @Test func aResultWaitsForItsReader() async throws {
    let expected = try await Binaries.doorbell("--help").output
    try await Scratch.with { scratch in
      try await StalledPipe.with(scratch) { pipe in
        let help = try pipe.doorbell(1, "--help")
        try await hasResult(help)
        let reader = try await pipe.reader()
        #expect(await help.ending(within: Self.patience).code == ExitCode.ok.rawValue)
        #expect(await pipe.lines(reader) == expected)
      }
    }
  }

  @Test func aResultThatNobodyReadsIsInterrupted() async throws {
    try await Scratch.with { scratch in
      try await StalledPipe.with(scratch) { pipe in
        let help = try pipe.doorbell(1, "--help")
        try await hasResult(help)
        help.send(signal: SIGTERM)
        #expect(await help.ending(within: Self.patience).code == ExitCode.interrupted.rawValue)
      }
    }
  }

  /// The reason is for people, the code is for whoever started it.
  @Test func aFailureIsToldByItsCode() async throws {
    try await Scratch.with { scratch in
      try await StalledPipe.with(scratch) { pipe in
        let wrong = try pipe.doorbell(2, "listen", "--tabel", "todos")
        #expect(await wrong.ending(within: Self.patience).code == ExitCode.usage.rawValue)
      }
    }
  }
}
