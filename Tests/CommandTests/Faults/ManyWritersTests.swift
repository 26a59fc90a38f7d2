import Glibc
import HostKit
import KizunaSyncTestSupport
import LocalStack
import Testing

/// Four programs write to the file at once while the gateway syncs it. `KIZUNA_WRITER_ROWS` says how many rows each; the
/// long run makes it 10,000.
@Suite struct ManyWritersTests {
  static let rows = ProcessEnvironment.variables["KIZUNA_WRITER_ROWS"].flatMap { Int($0) } ?? 1000

  @Test(.enabled(if: access(ForeignWriters.shell, X_OK) == 0), .timeLimit(.minutes(60)))
  func everyRowArrivesOnce() async throws {
    try await TwoHosts.with { hosts in
      try await RunningGateway.with(configuration: hosts.a.configuration) { _ in
        let names = ["one", "two", "three", "four"]
        let writers = try names.map {
          try ForeignWriters.inserting(Self.rows, as: $0, database: hosts.a.database, hosts.scratch)
        }
        for writer in writers {
          let ending = await writer.ending()
          #expect(ending.code == 0, "\(ending.errors)")
        }
        let total = Self.rows * names.count
        #expect(try hosts.a.number("SELECT count(*) FROM todos") == total)
        try await eventually("everything delivered", within: .seconds(900)) { try hosts.a.isDelivered }
        #expect(await hosts.stack.server.rowCount("todos") == total)
        let rows = try hosts.a.rows()
        #expect(await hosts.served("todos", like: rows) == rows)
        for name in names {
          #expect(
            try hosts.a.number("SELECT count(DISTINCT title) FROM todos WHERE title LIKE '\(name)-%'") == Self.rows)
        }
        // One verdict for each write: nothing was sent under two ids.
        let verdicts = await hosts.stack.server.dump().split(separator: "\n").filter { $0.hasPrefix("verdict ") }
        #expect(verdicts.count == total && verdicts.allSatisfy { $0.contains(" applied ") })
        #expect(try PlainSQL.run(hosts.a.database, "PRAGMA integrity_check") == ["ok"])
        print("\(total) rows of \(names.count) programs arrived once each")
      }
    }
  }
}
