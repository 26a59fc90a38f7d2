import HostKit
import Testing

@testable import KizunaSync

/// Somebody drops bookkeeping tables: they are made again, the file and the server agree afterwards, and what was waiting
/// to be sent is found again as far as rows can show it.
@Suite struct DroppedBookkeepingTests {
  private static let every =
    Schema.Table.allCases.map { [$0] } + [
      [.kinds, .tables], [.outbox, .image], [.capture, .displaced], Schema.Table.allCases,
    ]

  private func drop(_ tables: [Schema.Table], from file: SyncedFile) throws {
    try file.sql.run(tables.map { "DROP TABLE \($0.name)" }.joined(separator: "; "))
  }

  @Test(arguments: every)
  func betweenTwoRuns(tables: [Schema.Table]) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      for pk in ["a", "b", "d"] { try await file.serve(pk, ["title": .string("server \(pk)"), "done": false]) }
      try await file.sync()
      try await file.engine { _ in
        try file.sql.run("INSERT INTO todos(id, title) VALUES ('c', 'queued')")
      }
      try file.sql.run("INSERT INTO todos(id, title) VALUES ('e', 'captured')")
      try await file.server.delete("todos", "d")
      try drop(tables, from: file)

      #expect(throws: KizunaSyncError.self) { try KizunaSyncReplicaStatus.read(databasePath: file.path) }
      try await file.sync()
      try await file.sync()
      #expect(try file.rows().filter { !$0.hasPrefix("d") } == ["a:server a", "b:server b", "c:queued", "e:captured"])
      #expect(await file.server.row("todos", "c")?["title"] == "queued")
      #expect(await file.server.row("todos", "e")?["title"] == "captured")
      #expect(await file.server.row("todos", "d") == nil)
      #expect(try file.rows().contains { $0.hasPrefix("d") } == false)
      #expect(file.events.contains("store.bookkeeping_made_again") == (tables.count < Schema.Table.allCases.count))
      // It works as before.
      try file.sql.run("UPDATE todos SET title = 'again' WHERE id = 'a'; DELETE FROM todos WHERE id = 'b'")
      try await file.serve("c", ["title": "theirs"])
      try await file.sync()
      #expect(try file.rows() == ["a:again", "c:theirs", "e:captured"])
      #expect(await file.server.row("todos", "a")?["title"] == "again")
      #expect(await file.server.row("todos", "b") == nil)
      #expect(try file.sql.texts("PRAGMA integrity_check") == ["ok"])
    }
  }

  @Test(arguments: Schema.Table.allCases)
  func underARunningClient(table: Schema.Table) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      try await file.serve("a", ["title": "one"])
      try await file.engine { engine in
        try await engine.sync()
        try file.sql.run("INSERT INTO todos(id, title) VALUES ('c', 'new')")
        try drop([table], from: file)
        try await file.serve("b", ["title": "two"])
        try await engine.sync()
        #expect(try file.rows() == ["a:one", "b:two", "c:new"])
        #expect(await file.server.row("todos", "c")?["title"] == "new")
        try file.sql.run("UPDATE todos SET title = 'again' WHERE id = 'a'")
        try await engine.sync()
        #expect(await file.server.row("todos", "a")?["title"] == "again")
      }
    }
  }

  /// The journal's numbers go on, or a running client would take new rows for old ones.
  @Test func numbersOfTheJournalAreNotUsedTwice() async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      try await file.engine { engine in
        for number in 0..<5 { try file.sql.run("INSERT INTO todos(id, title) VALUES ('r\(number)', 'x')") }
        try await engine.sync()
        try drop([.capture], from: file)
        try await engine.sync()
        try file.sql.run("INSERT INTO todos(id, title) VALUES ('new', 'y')")
        try await engine.sync()
        #expect(await file.server.row("todos", "new")?["title"] == "y")
      }
    }
  }

  @Test func statusNamesWhatIsMissing() async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      try await file.sync()
      try drop([.outbox], from: file)
      let error = #expect(throws: KizunaSyncError.self) { try KizunaSyncReplicaStatus.read(databasePath: file.path) }
      #expect(error?.message.contains("dropped _kizunasync_outbox from \(file.path)") == true)
      #expect(error?.message.contains("no such table") == false)
    }
  }
}
