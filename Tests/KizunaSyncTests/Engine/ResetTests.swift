import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// A replica that is emptied for good, between the reset and the next sync.
@Suite struct ResetTests {
  /// What is written then belongs to who is signed in, and joins the rows that come back.
  @Test func writesBetweenTheResetAndTheNextSyncAreKept() async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      try await file.serve("a", ["title": "one"])
      try await file.serve("b", ["title": "two"])
      try await file.sync()
      try file.sql.run("UPDATE todos SET title = 'lost with the reset' WHERE id = 'a'")
      try await file.engine { engine in
        try await engine.reset()
        #expect(try file.rows() == [])
        #expect(try await engine.outboxDepth() == 0)
        try file.sql.run("INSERT INTO todos(id, title) VALUES ('s', 'by sql'), ('b', 'over theirs')")
        try await engine.apply(
          LocalWrite(table: "todos", pk: "l", op: .insert, columns: ["id": "l", "title": "by the library"]))
        #expect(try await engine.outboxDepth() == 3)
        try await engine.sync()
      }
      try await file.sync()
      #expect(try file.rows() == ["a:one", "b:over theirs", "l:by the library", "s:by sql"])
      for key in ["s", "l", "b"] { #expect(await file.server.row("todos", key)?["owner_id"] == .string(owner)) }
      #expect(await file.server.row("todos", "a")?["title"] == "one")
      #expect(await file.server.row("todos", "b")?["title"] == "over theirs")
    }
  }
}
