import Glibc
import HostKit
import Testing

/// A disk that was filled while nothing ran: SQLite then fails beside the database, not in it.
@Suite struct FullDiskTests {
  @Test func itIsNamedAndStatusStillReads() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        guard let disk = try await SmallDisk(scratch.path + "/disk") else { return }
        let database = disk.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        try disk.fill()
        for verb in ["sync", "run"] {
          let ending = try await Binaries.doorbell(verb, "--config", file, "--log-level", "error")
          #expect(ending.code == ExitCode.database.rawValue, "\(verb)")
          #expect(ending.errors.last?.contains("the disk that holds the database \(database) is full") == true)
        }
        try await readsStatus(file)
        disk.free()
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        await disk.unmount()
      }
    }
  }

  /// What a killed run left in the log is not in the file, and must not be missing from what is told.
  @Test func statusReadsTheLogOfAKilledRun() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        guard let disk = try await SmallDisk(scratch.path + "/disk") else { return }
        let database = disk.path + "/a.db"
        let file = try scratch.write("a.json", stack.configuration(database: database))
        try await RunningGateway.with(configuration: file) { gateway in
          try PlainSQL.run(database, "INSERT INTO todos(title) VALUES ('x')")
          try await eventually("the push") {
            try PlainSQL.run(database, "SELECT count(*) FROM _kizunasync_pushed") == ["1"]
          }
          gateway.process.send(signal: SIGKILL)
          _ = await gateway.process.ending()
        }
        unlink(database + "-shm")
        try disk.fill()
        let status = try await readsStatus(file)
        #expect(status["tables"]?["todos"]?["rows"] == 1)
        disk.free()
        let ending = try await Binaries.doorbell("status", "--config", file, "--json")
        #expect(try JSONValue(parsing: ending.output.joined())["tables"]?["todos"]?["rows"] == 1)
        await disk.unmount()
      }
    }
  }

  @discardableResult
  private func readsStatus(_ file: String) async throws -> JSONValue {
    let ending = try await Binaries.doorbell("status", "--config", file, "--json")
    #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
    return try JSONValue(parsing: ending.output.joined())
  }
}
