#if Postgres
  import HTTPClient
  import HostKit
  import KizunaSyncTestSupport
  import PostgresTestSupport

  @testable import KizunaSync

  /// A PostgreSQL with the server pack, served over HTTP, and sessions of other programs that write to it.
  final class PostgresServer: ConvergenceServer {
    private let served: ServedPack
    private let http = CurlHTTPClient()
    /// Looks at everything and changes nothing.
    private let observer: SQLSession
    /// Watches who waits for whom while a request is under way.
    private let watcher: SQLSession
    private let writers: [SQLWriter]
    private let followers: [FeedFollower]
    /// The newest seq when a policy last changed what it shows.
    private let policyChange = Locked<Int64>(0)
    /// Whether whoever keeps a request waiting is made to end, or ends by itself.
    private let isStepwise: Bool

    /// - Parameters:
    ///   - change: SQL that changes the pack.
    ///   - isStepwise: a program does one thing after another.
    static func start(_ change: String = "", isStepwise: Bool) async throws -> PostgresServer {
      let served = try await ServedPack.start("convergence", tables)
      do {
        if !change.isEmpty { try await served.database.run(change) }
        return try await PostgresServer(served, isStepwise: isStepwise)
      } catch {
        await served.stop()
        throw error
      }
    }

    private init(_ served: ServedPack, isStepwise: Bool) async throws {
      self.served = served
      self.isStepwise = isStepwise
      observer = try served.database.session()
      watcher = try served.database.session()
      var writers: [SQLWriter] = []
      for name in ["first", "second", "short"] { writers.append(try await SQLWriter(served.database, name)) }
      self.writers = writers
      followers = Set(ConvergenceProgram.users).sorted().map { [http] user in
        FeedFollower(user) { body in
          let headers = [
            "apikey": served.stack.publishableKey, "Authorization": "Bearer \(served.token(user))",
            "Content-Type": "application/json", "Content-Profile": "kizunasync",
          ]
          let answer = try await http.send(
            HTTPRequest(
              method: "POST", url: served.stack.url + "/rest/v1/rpc/pull",
              headers: headers.map { HTTPHeader($0.key, $0.value) }, body: JSONWriter.data(body)))
          return try JSONValue(parsing: answer.body)
        }
      }
    }

    func remote(for user: String) -> KizunaSyncRemoteConfig { served.remote(user) }

    // MARK: Requests

    /// A request that waits for a writer would wait for ever, since a program does one thing after another: then the
    /// writer commits or rolls back, or the request is cancelled, as by a server's time limit.
    func answer(
      _ request: HTTPRequest, from user: String, isRepeated: Bool, in world: ConvergenceWorld
    ) async throws -> HTTPResponse {
      let isDone = Locked(false)
      let isAtOnce = isRepeated && world.random { $0.chance(50) }
      return try await withThrowingTaskGroup(of: HTTPResponse?.self) { group in
        group.addTask { [http] in
          defer { isDone.withLock { $0 = true } }
          if isAtOnce {
            async let other = http.send(request)
            let answer = try await http.send(request)
            _ = try await other
            return answer
          }
          if isRepeated { _ = try await http.send(request) }
          return try await http.send(request)
        }
        if isStepwise, writers.contains(where: \.isPaused) {
          group.addTask { [self] in
            while !isDone.withLock({ $0 }) { try await endBlocker(in: world) }
            return nil
          }
        }
        var answer: HTTPResponse?
        for try await result in group where result != nil { answer = result }
        guard let answer else { throw HTTPError(.other, "no answer") }
        return answer
      }
    }

    private func endBlocker(in world: ConvergenceWorld) async throws {
      let pairs = try await watcher.run(
        """
        select pg_sleep(0.002) \\g /dev/null
        select a.pid, b.pid from pg_stat_activity as a cross join lateral unnest(pg_blocking_pids(a.pid)) as b (pid)
        where a.datname = current_database() and a.wait_event_type = 'Lock'
        """)
      for pair in pairs {
        let pids = pair.split(separator: "|").map(String.init)
        guard let writer = writers.first(where: { $0.pid == pids[1] }) else { continue }
        switch world.isCalm ? 0 : world.random({ $0.below(3) }) {
        case 0:
          world.saw("a request waited for a commit")
          try await end(writer, commits: true, "with a request waiting", in: world)
        case 1:
          world.saw("a request waited for a rollback")
          try await end(writer, commits: false, "with a request waiting", in: world)
        default:
          world.saw("a request was cancelled")
          world.note("a request that waits for \(writer.name) is cancelled")
          try await watcher.run("select pg_cancel_backend(\(pids[0])) \\g /dev/null")
        }
        return
      }
    }

    // MARK: Others

    func disturb(_ random: inout SeededRandom, in world: ConvergenceWorld) async throws {
      let choice = random.below(10)
      let writer = choice < 3 ? writers[2] : writers[choice % 2]
      if writer.isPaused, random.chance(45) {
        try await end(writer, commits: random.chance(65), "", in: world)
        return
      }
      var statements: [SQLStatement] = []
      for _ in 0...random.below(3) { statements.append(SQLStatement(&random)) }
      await writer.write(statements, in: world)
      // A transaction of its own, or one that stays open for some steps.
      if writer === writers[2] { try await end(writer, commits: true, "", in: world) }
    }

    /// All writers and those who follow the feed, each at a pace of its own.
    func writeAtOnce(seed: UInt64, in world: ConvergenceWorld) async throws {
      let writing = Locked(writers.count)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, writer) in writers.enumerated() {
          group.addTask { [self] in
            defer { writing.withLock { $0 -= 1 } }
            var random = SeededRandom(seed &* 10 &+ UInt64(number))
            for _ in 0..<40 {
              await writer.write((0...random.below(3)).map { _ in SQLStatement(&random) }, in: world)
              try await writer.pause(milliseconds: random.below(80))
              if random.chance(50) { await writer.write([SQLStatement(&random)], in: world) }
              try await end(writer, commits: random.chance(75), "", in: world)
            }
          }
        }
        for follower in followers {
          group.addTask {
            while writing.withLock({ $0 > 0 }) { try await follower.follow() }
          }
        }
        try await group.waitForAll()
      }
    }

    private func end(_ writer: SQLWriter, commits: Bool, _ when: String, in world: ConvergenceWorld) async throws {
      guard try await writer.end(commits: commits, when, in: world) else { return }
      world.saw("a policy was changed")
      let newest =
        Int64(try await observer.run("select coalesce(max(seq), 0) from kizunasync.changes").first ?? "") ?? 0
      policyChange.withLock { $0 = max($0, newest) }
    }

    func reap() async throws {
      try await observer.run(
        """
        update kizunasync.settings set tombstone_ttl_days = 0;
        select kizunasync.reap_tombstones() \\g /dev/null
        update kizunasync.settings set tombstone_ttl_days = 30
        """)
    }

    func settle(in world: ConvergenceWorld) async throws {
      for writer in writers where writer.isPaused {
        try await end(writer, commits: world.random { $0.chance(65) }, "at last", in: world)
      }
    }

    func close() async {
      for writer in writers { await writer.close() }
      for session in [observer, watcher] { await session.end() }
      await served.stop()
    }

    // MARK: What it has

    func rows(_ table: String) async throws -> [String: RowMap] {
      Self.rows(try await json("select coalesce(jsonb_object_agg(x.id, to_jsonb(x)), '{}') from public.\(table) as x;"))
    }

    func shown(to user: String, team: String) async throws -> ShownRows {
      func all(_ table: String, _ condition: String) -> String {
        "'\(table)', (select coalesce(jsonb_object_agg(x.id, to_jsonb(x)), '{}') from public.\(table) as x where \(condition))"
      }
      let tables = try await json(
        """
        begin;
        set local role authenticated;
        select set_config('request.jwt.claims', '{"sub": "\(user)", "role": "authenticated"}', true) \\g /dev/null
        select jsonb_build_object(\(all("t", "true")), \(all("log", "true")), \(all("p", "team = '\(team)'")));
        commit;
        """)
      let unannounced = try await observer.run(
        """
        select pk from kizunasync.changes
        where table_name = 'p' and deleted_at is null and seq <= \(policyChange.withLock { $0 })
        """)
      return ShownRows(
        tables: (tables.objectValue ?? [:]).mapValues { Self.rows($0) }, unannounced: Set(unannounced))
    }

    func verdicts() async throws -> [String: String] {
      try await json(
        "select coalesce(jsonb_object_agg(mutation_id, coalesce(reason, verdict)), '{}') from kizunasync.verdicts;"
      ).objectValue?.compactMapValues(\.stringValue) ?? [:]
    }

    private func json(_ sql: String) async throws -> JSONValue {
      try JSONValue(parsing: try await observer.run(sql).joined(separator: "\n"))
    }

    private static func rows(_ value: JSONValue) -> [String: RowMap] {
      (value.objectValue ?? [:]).compactMapValues(\.objectValue)
    }

    /// Whoever follows the feed has at every moment all that is committed.
    func problem() async throws -> String? {
      for follower in followers {
        try await follower.follow()
        for team in ConvergenceProgram.teams {
          if let problem = await follower.problem(try await shown(to: follower.user, team: team)) {
            return problem
          }
        }
      }
      return nil
    }

    private static let tables = """
      create table public.t (id text primary key, owner_id text, a integer, b integer, c text);
      create table public.log (id text primary key, owner_id text, n integer);
      create table public.p (id text primary key, team text, reader text, a integer);
      create table public.shares (team text, reader text, primary key (team, reader));
      grant select on public.shares to authenticated;
      create index on public.t (owner_id);
      create index on public.log (owner_id);
      create index on public.p (team);
      alter table public.t enable row level security;
      alter table public.log enable row level security;
      alter table public.p enable row level security;
      create policy own on public.t to authenticated using (owner_id = auth.uid()::text);
      create policy own on public.log to authenticated using (owner_id = auth.uid()::text);
      create policy readers on public.p to authenticated using (
        reader = auth.uid()::text
        or exists (select from public.shares as s where s.team = p.team and s.reader = auth.uid()::text));
      select kizunasync.sync_table('t', bucket_column => 'owner_id');
      select kizunasync.sync_table('log', bucket_column => 'owner_id');
      select kizunasync.sync_table('p', bucket_column => 'team');
      """
  }
#endif
