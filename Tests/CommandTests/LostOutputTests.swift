import HostKit
import Testing

/// A result that nobody got is no success.
@Suite struct LostOutputTests {
  private func shell(_ command: String) async throws -> ChildProcess.Ending {
    await (try ChildProcess(executable: "/bin/sh", arguments: ["-c", command])).ending()
  }

  @Test func aFullDiskBehindStandardOutputIsTold() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        for command in ["sync", "status", "status --json", "outbox list", "sync --help"] {
          let config = command.hasSuffix("--help") ? "" : " --config \(file)"
          let ending = try await shell("'\(Binaries.doorbell)' \(command)\(config) > /dev/full")
          #expect(ending.code == ExitCode.failure.rawValue, "\(command)")
          #expect(
            ending.errors.last?.hasPrefix("kizuna-doorbell: standard output could not be written: No space left")
              == true,
            "\(command): \(ending.errors)")
        }
      }
    }
  }

  @Test func aReaderThatHasEnoughIsNoFailure() async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write("a.json", stack.configuration(database: scratch.path + "/a.db"))
        #expect(try await Binaries.doorbell("sync", "--config", file).code == ExitCode.ok.rawValue)
        let ending = try await shell(
          "{ '\(Binaries.doorbell)' status --config \(file); echo code $? >&2; } | true")
        #expect(ending.errors == ["code 0"])
      }
    }
  }
}
