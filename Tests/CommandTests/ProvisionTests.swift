import Glibc
import HostKit
import PostgresTestSupport
import Testing

/// `provision`, with a real PostgreSQL and with a `psql` that only looks.
@Suite struct ProvisionTests {
  private static func configuration(
    _ scratch: Scratch, tables: String = #"{"todos": {"bucket": {"owner": "owner_id"}}}"#
  )
    throws -> String
  {
    let password = try scratch.write("password", "secret")
    return try scratch.write(
      "gateway.json",
      """
      {"url": "http://127.0.0.1:1", "publishableKey": "key", "database": "replica.db", "tables": \(tables),
       "session": {"email": "me@example.org", "passwordFile": "\(password)"}}
      """)
  }

  private static let table = """
    create table public.todos (id uuid primary key, owner_id uuid not null);
    create index on public.todos (owner_id);
    insert into public.todos select gen_random_uuid(), gen_random_uuid() from generate_series(1, 3);
    """

  private static func withDatabase(_ body: (TestDatabase, Scratch) async throws -> Void) async throws {
    let package = String(#filePath.prefix(upTo: #filePath.range(of: "/Tests/")))
    let scaffolding = try HostFile.readText(package + "/Sources/PostgresStack/Resources/scaffolding.sql")
    try await PostgresCluster.shared.withDatabase(template: "scaffolded", setUp: [scaffolding]) { database in
      try await Scratch.with { try await body(database, $0) }
    }
  }

  @Test func printsSQLWithoutADatabase() async throws {
    try await Scratch.with { scratch in
      let file = try Self.configuration(scratch)
      let ending = try await Binaries.doorbell("provision", "--config", file)
      #expect(ending.code == 0 && ending.output.first == "begin isolation level read committed;")
      #expect(ending.output.last { !$0.isEmpty } == "commit;")
      #expect(ending.output.contains { $0.contains(#"select kizunasync.provision('[{"bucket":"owner_id""#) })
      // Nothing but the tables is looked at, and no secret is read.
      let bare = try scratch.write(
        "bare.json",
        #"{"tables": {"todos": {"bucket": {"owner": "owner_id"}}}, "session": {"email": "a@b", "passwordFile": "none"}}"#
      )
      #expect(try await Binaries.doorbell("provision", "--config", bare).output == ending.output)
      let misspelt = try scratch.write("misspelt.json", #"{"tables": {"todos": {}}, "sesion": {}}"#)
      #expect(try await Binaries.doorbell("provision", "--config", misspelt).code == ExitCode.configuration.rawValue)
      #expect(try await Binaries.doorbell("provision").code == ExitCode.usage.rawValue)
      let removal = try await Binaries.doorbell("provision", "--remove")
      #expect(removal.code == 0 && removal.output.contains("drop schema if exists kizunasync cascade;"))
      #expect(try await Binaries.doorbell("provision", "--config", file, "--check").code == 2)
    }
  }

  @Test(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
  func appliesChecksAndRemoves() async throws {
    try await Self.withDatabase { database, scratch in
      let file = try Self.configuration(scratch)
      let base = ["provision", "--config", file, "--database-url", database.url()]
      func provision(_ more: String...) async throws -> ChildProcess.Ending {
        await (try ChildProcess(executable: Binaries.doorbell, arguments: base + more)).ending()
      }

      let missing = try await provision("--check")
      #expect(
        missing.code == 3 && missing.output == ["the server pack is not installed, or of another release; provision"])

      try await database.run(Self.table)
      let refused = try await provision()
      #expect(refused.code == 4 && refused.output == [])
      #expect(refused.errors.contains { $0.hasPrefix("kizuna-doorbell: row-level security is off for table todos") })

      try await database.run("alter table public.todos enable row level security")
      let applied = try await provision()
      #expect(applied.code == 0 && applied.output == ["todos: synced, 3 rows entered"], "\(applied.errors)")
      #expect(try await provision().output == ["todos: unchanged"])
      #expect(try await provision("--check").output == ["the database is as provisioned"])
      #expect(try await database.run("select count(*), max(seq) from kizunasync.changes") == ["3|3"])

      try await database.run("drop trigger kizunasync_delete on public.todos")
      let drifted = try await provision("--check")
      #expect(drifted.code == 3)
      #expect(
        drifted.output
          == ["triggers of table todos are missing, disabled or changed, so changes may be lost; provision again"])
      #expect(try await provision().output == ["todos: synced, 3 rows entered"])

      // What the server warns of is shown, and the rest done.
      try await database.run("drop function realtime.send(jsonb, text, text, boolean)")
      let warned = try await provision()
      #expect(warned.code == 0 && warned.output == ["todos: unchanged"])
      #expect(warned.errors.contains { $0.contains("there is no function realtime.send(jsonb, text, text, boolean)") })

      #expect(try await provision("--remove").code == 0)
      #expect(
        try await database.run("select to_regnamespace('kizunasync') is null, count(*) from public.todos") == ["t|3"])
    }
  }

  /// What it began must not be done later, when nobody waits for it any more.
  @Test(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
  func stoppedItLeavesNobodyAtWork() async throws {
    try await Self.withDatabase { database, scratch in
      let file = try Self.configuration(scratch)
      try await database.run(Self.table + "; alter table public.todos enable row level security")
      let base = ["provision", "--config", file, "--database-url", database.url()]
      let applied = await (try ChildProcess(executable: Binaries.doorbell, arguments: base)).ending()
      try #require(applied.code == 0, "\(applied.errors)")
      let writer = try database.session()
      _ = try await writer.run("begin; lock table public.todos in row exclusive mode")
      let removing = try ChildProcess(executable: Binaries.doorbell, arguments: base + ["--remove"])
      let waiting = "select count(*) from pg_stat_activity where application_name = 'kizuna-doorbell provision'"
      try await eventually("the wait for the lock") {
        try await database.run(waiting + " and wait_event_type = 'Lock' and datname = current_database()") == ["1"]
      }
      removing.send(signal: SIGTERM)
      let ending = await removing.ending()
      #expect(
        ending.code == ExitCode.interrupted.rawValue && ending.errors.contains { $0.contains("nothing was changed") })
      _ = try await writer.run("rollback")
      await writer.end()
      try await eventually("its end") {
        try await database.run(waiting + " and datname = current_database()") == ["0"]
      }
      #expect(try await database.run("select to_regnamespace('kizunasync') is not null") == ["t"])
    }
  }

  /// The address holds a password: it is in no argument of `psql`, and in no message.
  @Test func keepsTheAddressToItself() async throws {
    try await Scratch.with { scratch in
      let file = try Self.configuration(scratch)
      try scratch.write(
        "psql",
        """
        #!/bin/sh
        printf '%s\\n' "$@" > '\(scratch.path)/arguments'
        echo "$PGUSER $PGPASSWORD $PGHOST $PGPORT $PGDATABASE $PGSSLMODE" > '\(scratch.path)/variables'
        echo 'psql: error: connection to server at "db.example.org" failed: FATAL:  password authentication failed for user "me"' >&2
        exit 2
        """, mode: 0o700)
      let url = "postgresql://me:p%40ss@db.example.org:6543/app?sslmode=require"
      for address in [url, "env:TEST_DATABASE"] {
        let ending = await
          (try ChildProcess(
            executable: Binaries.doorbell, arguments: ["provision", "--config", file, "--database-url", address],
            environment: ["PATH": scratch.path, "TEST_DATABASE": url])).ending()
        #expect(ending.code == ExitCode.authentication.rawValue)
        #expect(!(ending.output + ending.errors).contains { $0.contains("p@ss") || $0.contains("p%40ss") })
        #expect(try HostFile.readText(scratch.path + "/variables") == "me p@ss db.example.org 6543 app require\n")
        let arguments = try HostFile.readText(scratch.path + "/arguments")
        #expect(!["p@ss", "p%40ss", "db.example.org", "postgresql:"].contains { arguments.contains($0) })
      }
    }
  }

  @Test(
    arguments: [
      ("mysql://me:hidden@h/d", ExitCode.usage), ("postgresql://me:hidden@h/d?nothing=1", .usage),
      ("env:NO_SUCH_VARIABLE", .configuration), ("postgresql://me:hidden@127.0.0.1:1/d", .unreachable),
    ])
  func wrongAddresses(address: String, code: ExitCode) async throws {
    guard code != .unreachable || PostgresInstallation.isPresent else { return }
    try await Scratch.with { scratch in
      let ending = try await Binaries.doorbell(
        "provision", "--config", Self.configuration(scratch), "--database-url", address)
      #expect(ending.code == code.rawValue, "\(ending.errors)")
      #expect(!ending.errors.contains { $0.contains("hidden") })
    }
  }
}

extension String {
  fileprivate func range(of text: String) -> Index {
    indices.first { self[$0...].hasPrefix(text) } ?? endIndex
  }
}
