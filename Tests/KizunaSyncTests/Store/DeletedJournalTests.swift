import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Another program deletes rows of the capture journal, which it should leave alone.
@Suite struct DeletedJournalTests {
  private func withSyncedFile(_ body: (SyncedFile) async throws -> Void) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      for key in ["a", "b"] { try await file.serve(key, ["title": .string(key)]) }
      try await file.sync()
      for number in 0..<5 { try file.sql.run("UPDATE todos SET title = 'v\(number)' WHERE id = 'a'") }
      try await file.sync()
      try await body(file)
    }
  }

  @Test(arguments: [true, false], [1, 5, 20])
  func whatIsWrittenAfterwardsIsSent(isRunning: Bool, writes: Int) async throws {
    try await withSyncedFile { file in
      let write = {
        try file.sql.run("DELETE FROM _kizunasync_capture")
        for number in 0..<writes { try file.sql.run("INSERT INTO todos(id, title) VALUES ('n\(number)', 'x')") }
      }
      if isRunning {
        try await file.engine { engine in
          try await engine.sync()
          try write()
          try await engine.sync()
        }
      } else {
        try write()
      }
      try await file.sync()
      for number in 0..<writes { #expect(await file.server.row("todos", "n\(number)")?["title"] == "x") }
      #expect(file.events.filter { $0 == "store.journal_deleted" }.count == 1)
    }
  }

  @Test func whatWasInItIsFoundByComparing() async throws {
    try await withSyncedFile { file in
      try file.sql.run(
        "INSERT INTO todos(id, title) VALUES ('n', 'x'); UPDATE todos SET title = 'mine' WHERE id = 'b'; "
          + "DELETE FROM _kizunasync_capture; UPDATE todos SET title = 'later' WHERE id = 'a'")
      try await file.sync()
      try await file.sync()
      #expect(await file.server.row("todos", "n")?["title"] == "x")
      #expect(await file.server.row("todos", "b")?["title"] == "mine")
      #expect(await file.server.row("todos", "a")?["title"] == "later")
      #expect(try file.rows() == ["a:later", "b:mine", "n:x"])
    }
  }

  @Test func theAnchorAloneIsMadeAgain() async throws {
    try await withSyncedFile { file in
      try file.sql.run(
        "INSERT INTO todos(id, title) VALUES ('n', 'x'); "
          + "DELETE FROM _kizunasync_capture WHERE seq < (SELECT max(seq) FROM _kizunasync_capture)")
      try await file.sync()
      #expect(await file.server.row("todos", "n")?["title"] == "x")
      #expect(file.events.contains("store.journal_deleted"))
    }
  }
}
