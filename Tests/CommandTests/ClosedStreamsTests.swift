import Glibc
import HostKit
import Testing

/// Programs that are started without standard streams, as some supervisors and cron jobs do.
@Suite struct ClosedStreamsTests {
  private func shell(_ command: String) throws -> ChildProcess {
    try ChildProcess(executable: "/bin/sh", arguments: ["-c", command])
  }

  /// Nothing else takes the place of a stream that is missing: a line for the log would be read as a signal, or go to the
  /// server.
  @Test(arguments: ["<&-", "2>&-", "<&- 2>&-"]) func missingStreamsAreNotTakenByOthers(closed: String) async throws {
    let stack = try shell(
      "exec '\(Binaries.localStack)' --port 0 --table todos:owner_id --user \(Stack.email):pw --log-level debug \(closed)"
    )
    do {
      let ready = try JSONValue(parsing: try await stack.line(of: .output, within: .seconds(150)))
      let url = try #require(ready["url"]?.stringValue)
      let key = try #require(ready["publishableKey"]?.stringValue)
      try await Scratch.with { scratch in
        let file = try scratch.write(
          "a.json",
          """
          {"url": "\(url)", "publishableKey": "\(key)", "database": "\(scratch.path)/a.db",
           "tables": {"todos": {"bucket": {"owner": "owner_id"}, "columns": {"owner_id": "text", "title": "text"}}},
           "session": {"email": "\(Stack.email)", "password": "pw"}}
          """)
        let sync = await (try shell("'\(Binaries.doorbell)' sync --config \(file) --log-level debug \(closed)"))
          .ending()
        #expect(sync.code == ExitCode.ok.rawValue)
        #expect(!sync.output.isEmpty)
        let listen = try shell("exec '\(Binaries.doorbell)' listen --config \(file) --log-level debug \(closed)")
        _ = try await listen.line(of: .output, within: .seconds(150)) { $0.contains("\"ready\":true") }
        listen.send(signal: SIGTERM)
        #expect(await listen.ending().code == ExitCode.ok.rawValue)
        // A result that nobody can get is lost.
        let lost = await (try shell("'\(Binaries.doorbell)' sync --config \(file) \(closed) >&-")).ending()
        #expect(lost.code == ExitCode.failure.rawValue)
      }
      stack.send(signal: SIGTERM)
      #expect(await stack.ending().code == ExitCode.ok.rawValue)
    } catch {
      await stack.stop()
      throw error
    }
  }
}
