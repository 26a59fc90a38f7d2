import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// Columns that come, go or get another name while the table stays.
@Suite struct ChangedColumnsTests {
  private static let declaration = "CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT)"

  private func withSyncedFile(
    preparing script: String? = declaration, _ body: (SyncedFile) async throws -> Void
  ) async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      if let script { try file.sql.run(script) }
      try await file.serve("a", ["title": "one", "stars": 1])
      try await file.serve("b", ["title": "two", "stars": 2])
      try await file.serve("n", ["body": "note"], in: "notes")
      try await file.sync()
      file.transport.forgetCalls()
      let ignored = try KizunaSyncReplicaStatus.read(databasePath: file.path).ignoredColumns
      #expect(ignored == (script == nil ? [] : ["todos.stars"]))
      try await body(file)
    }
  }

  private func tablesReadFromTheStart(_ file: SyncedFile) -> [[String]] {
    file.transport.bodies(of: "pull").filter { $0["cursor"] == "0" }
      .map { $0["buckets"]?.arrayValue?.compactMap { $0["table"]?.stringValue } ?? [] }
  }

  @Test(arguments: [true, false])
  func aColumnTheServerHasIsFilledByOneRead(isRunning: Bool) async throws {
    try await withSyncedFile { file in
      let alter = {
        try file.sql.run(
          "UPDATE todos SET title = 'mine' WHERE id = 'a'; ALTER TABLE todos ADD COLUMN stars INTEGER; "
            + "UPDATE todos SET stars = 9 WHERE id = 'b'")
      }
      if isRunning {
        try await file.engine { engine in
          try await engine.sync()
          try alter()
          try await engine.sync()
        }
      } else {
        try alter()
        try await file.sync()
      }
      #expect(try file.rows("todos", "stars") == ["a:1", "b:9"])
      #expect(try file.rows() == ["a:mine", "b:two"])
      #expect(await file.server.row("todos", "b")?["stars"] == 9)
      #expect(await file.server.row("todos", "a")?["stars"] == 1)
      #expect(tablesReadFromTheStart(file) == [["todos"]])
      #expect(try KizunaSyncReplicaStatus.read(databasePath: file.path).ignoredColumns == [])
      #expect(!file.events.contains("store.writes_unseen"))
      try await file.sync()
      #expect(tablesReadFromTheStart(file) == [["todos"]])
    }
  }

  @Test func aDefaultOfANewColumnIsNoLocalWrite() async throws {
    try await withSyncedFile { file in
      try file.sql.run(
        "BEGIN; CREATE TABLE fresh(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT, stars INTEGER NOT NULL DEFAULT 0); "
          + "INSERT INTO fresh(id, owner_id, title) SELECT id, owner_id, title FROM todos; DROP TABLE todos; "
          + "ALTER TABLE fresh RENAME TO todos; COMMIT")
      try await file.sync()
      #expect(try file.rows("todos", "stars") == ["a:1", "b:2"])
      #expect(file.transport.bodies(of: "push").isEmpty)
    }
  }

  @Test func aRenamedColumnIsReportedAndItsQueuedValuesAreKept() async throws {
    try await withSyncedFile { file in
      try file.sql.run(
        "UPDATE todos SET title = 'mine' WHERE id = 'a'; ALTER TABLE todos RENAME COLUMN title TO headline; "
          + "UPDATE todos SET headline = 'later' WHERE id = 'b'")
      // It is configured under the old name.
      let refused = await #expect(throws: KizunaSyncError.self) { try await file.sync() }
      #expect(refused?.message.contains("the table todos has no column title") == true)
      try file.sql.run("ALTER TABLE todos RENAME COLUMN headline TO title")
      try await file.sync()
      #expect(await file.server.row("todos", "a")?["title"] == "mine")
      #expect(await file.server.row("todos", "b")?["title"] == "later")
    }
    try await withSyncedFile(preparing: nil) { file in
      try await file.engine { engine in
        try await engine.sync()
        try file.sql.run("ALTER TABLE todos RENAME COLUMN stars TO points; UPDATE todos SET points = 7 WHERE id = 'a'")
        #expect(try await engine.outboxDepth() == 1)
        #expect(file.text(of: "store.column_renamed", "column") == "stars")
        #expect(file.text(of: "store.column_renamed", "to") == "points")
        try await engine.sync()
        #expect(await file.server.row("todos", "a")?["points"] == 7)
      }
    }
  }

  @Test func whatIsQueuedForAColumnThatGoesIsStillSent() async throws {
    try await withSyncedFile(preparing: nil) { file in
      try file.sql.run("UPDATE todos SET stars = 7, title = 'mine' WHERE id = 'a'")
      let triggers = try file.sql.texts("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'todos'")
      try file.sql.run(triggers.map { "DROP TRIGGER \"\($0)\"" }.joined(separator: "; "))
      try file.sql.run("ALTER TABLE todos DROP COLUMN stars")
      try await file.sync()
      #expect(await file.server.row("todos", "a")?["stars"] == 7)
      #expect(await file.server.row("todos", "a")?["title"] == "mine")
      #expect(file.text(of: "store.column_gone", "column") == "stars")
      #expect(try file.rows() == ["a:mine", "b:two"])
    }
  }

  @Test func aColumnIsDroppedWhileCaptureIsOffAndNoWriteGoesUnseen() async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder)
      try file.sql.run("CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT, stars INTEGER)")
      try await file.serve("a", ["title": "one", "stars": 1])
      try await file.serve("b", ["title": "two", "stars": 2])
      try await file.sync()
      try file.sql.run("UPDATE todos SET stars = 7, title = 'mine' WHERE id = 'a'")
      #expect(throws: (any Error).self) { try file.sql.run("ALTER TABLE todos DROP COLUMN stars") }
      try await file.engine { try await $0.turnCaptureOff() }
      for write in ["INSERT INTO todos(id) VALUES ('c')", "UPDATE todos SET title = 'x'", "DELETE FROM todos"] {
        let refused = #expect(throws: (any Error).self) { try file.sql.run(write) }
        #expect(String(describing: refused).contains("kizuna-doorbell capture on"))
      }
      try file.sql.run("ALTER TABLE todos DROP COLUMN stars")
      try await file.engine { _ in
        try file.sql.run("UPDATE todos SET title = 'theirs' WHERE id = 'b'")
      }
      try await file.sync()
      #expect(await file.server.row("todos", "a")?["stars"] == 7)
      #expect(await file.server.row("todos", "a")?["title"] == "mine")
      #expect(await file.server.row("todos", "b")?["title"] == "theirs")
      #expect(try file.rows() == ["a:mine", "b:theirs"])
      #expect(!file.events.contains("store.writes_unseen"))
    }
  }

  // MARK: Names that change hands

  /// `columns` are those of the table a, b, …: the server's names and values; then what another program does to them.
  private struct Handover: CustomTestStringConvertible {
    var testDescription: String
    var script: String
    /// The table afterwards, by the columns of the server, and the server's row.
    var rows: [String]
    var isOneTransaction = true
  }

  private static let handovers = [
    Handover(
      testDescription: "a new column takes the name of a renamed one",
      script: "ALTER TABLE todos RENAME COLUMN title TO former; ALTER TABLE todos ADD COLUMN title TEXT; "
        + "UPDATE todos SET title = 'new' WHERE id = 'a'; INSERT INTO todos(id, title, note) VALUES ('c', 'three', 'n3')",
      rows: ["a:new:n1", "b:two:n2", "c:three:n3"]),
    Handover(
      testDescription: "two columns swap their names",
      script: "ALTER TABLE todos RENAME COLUMN title TO x; ALTER TABLE todos RENAME COLUMN note TO title; "
        + "ALTER TABLE todos RENAME COLUMN x TO note; UPDATE todos SET title = 'new' WHERE id = 'a'",
      rows: ["a:new:n1", "b:two:n2"]),
    Handover(
      testDescription: "two columns swap their names and nothing is written",
      script: "ALTER TABLE todos RENAME COLUMN title TO x; ALTER TABLE todos RENAME COLUMN note TO title; "
        + "ALTER TABLE todos RENAME COLUMN x TO note",
      rows: ["a:one:n1", "b:two:n2"]),
    Handover(
      testDescription: "three columns pass their names on",
      script: "ALTER TABLE todos RENAME COLUMN note TO former; ALTER TABLE todos RENAME COLUMN title TO note; "
        + "ALTER TABLE todos ADD COLUMN title TEXT; UPDATE todos SET note = 'new' WHERE id = 'b'; "
        + "UPDATE todos SET title = 'newer' WHERE id = 'b'",
      rows: ["a:one:n1", "b:newer:new"]),
  ]

  @Test(arguments: handovers, [true, false])
  private func namesThatChangeHandsMixNothingUp(handover: Handover, isRunning: Bool) async throws {
    for declaration in [nil, "CREATE TABLE todos(id TEXT PRIMARY KEY, owner_id TEXT, title TEXT, note TEXT)"] {
      try await withScratchFolder { folder in
        let file = SyncedFile(folder)
        if let declaration { try file.sql.run(declaration) }
        try await file.serve("a", ["title": "one", "note": "n1"])
        try await file.serve("b", ["title": "two", "note": "n2"])
        try await file.sync()
        let script = "BEGIN; \(handover.script); COMMIT"
        if isRunning {
          try await file.engine { engine in
            try await engine.sync()
            try file.sql.run(script)
            try await engine.sync()
          }
        } else {
          try file.sql.run(script)
        }
        try await file.sync()
        try await file.sync()
        let cells = try file.sql.texts("SELECT id || ':' || title || ':' || note FROM todos ORDER BY id")
        #expect(cells == handover.rows, "\(declaration == nil ? "made by the replica" : "the app's")")
        for row in handover.rows {
          let parts = row.split(separator: ":").map(String.init)
          let served = await file.server.row("todos", parts[0])
          #expect(served?["title"] == .string(parts[1]))
          #expect(served?["note"] == .string(parts[2]))
        }
        #expect(try KizunaSyncReplicaStatus.read(databasePath: file.path).outboxDepth == 0)
      }
    }
  }

  /// Its triggers name no column, so the declaration tells.
  @Test func aPullOnlyTableIsReadAgain() async throws {
    try await withScratchFolder { folder in
      let file = SyncedFile(folder, ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"), syncMode: .pullOnly)])
      try await file.serve("a", ["title": "one", "note": "n1"])
      try await file.sync()
      try file.sql.run(
        "ALTER TABLE todos RENAME COLUMN title TO x; ALTER TABLE todos RENAME COLUMN note TO title; "
          + "ALTER TABLE todos RENAME COLUMN x TO note")
      try await file.sync()
      #expect(try file.sql.texts("SELECT title || note FROM todos") == ["onen1"])
    }
  }
}
