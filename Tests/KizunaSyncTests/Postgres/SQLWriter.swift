#if Postgres
  import HostKit
  import PostgresTestSupport

  /// A program with a session of its own that writes by SQL, in transactions as long as it likes.
  final class SQLWriter: Sendable {
    private struct State {
      var isOpen = false
      var changesPolicy = false
      /// Of all clients, when it began.
      var answers = 0
    }

    let name: String
    /// Of its backend.
    let pid: String
    private let session: SQLSession
    private let state = Locked(State())

    init(_ database: TestDatabase, _ name: String) async throws {
      self.name = name
      session = try database.session()
      // Whoever has what it wants does nothing else meanwhile.
      try await session.run("set lock_timeout = '100ms'")
      pid = try await session.run("select pg_backend_pid()").first ?? ""
    }

    /// Whether it is in the middle of a transaction.
    var isPaused: Bool { state.withLock { $0.isOpen } }

    func write(_ statements: [SQLStatement], in world: ConvergenceWorld) async {
      do {
        if !state.withLock({ $0.isOpen }) {
          try await session.run("begin")
          state.withLock { $0 = State(isOpen: true, answers: world.answers) }
        }
        for statement in statements {
          world.note("\(name): \(statement.text)")
          try await session.run(statement.text)
          if statement.changesPolicy { state.withLock { $0.changesPolicy = true } }
        }
      } catch {
        world.note("\(name): \((error as? SQLFailure)?.message ?? "\(error)"), rolls back")
        state.withLock { $0 = State() }
        _ = try? await session.run("rollback")
      }
    }

    /// - Returns: whether a change of policy was committed.
    func end(commits: Bool, _ when: String, in world: ConvergenceWorld) async throws -> Bool {
      let was = state.withLock { state in
        defer { state = State() }
        return state
      }
      guard was.isOpen else { return false }
      if world.answers > was.answers + 2 { world.saw("a transaction outlived requests") }
      world.note("\(name): \(commits ? "commits" : "rolls back") \(when)")
      try await session.run(commits ? "commit" : "rollback")
      return commits && was.changesPolicy
    }

    func pause(milliseconds: Int) async throws {
      try await session.run("select pg_sleep(0.001 * \(milliseconds)) \\g /dev/null")
    }

    func close() async { await session.end() }
  }

  /// A random statement.
  struct SQLStatement: Sendable {
    let text: String
    /// Whether rows come or go by it that are not changed themselves.
    let changesPolicy: Bool

    init(_ random: inout SeededRandom) {
      let (key, other) = (random.pick(ConvergenceProgram.keys), random.pick(ConvergenceProgram.keys))
      let user = random.pick(ConvergenceProgram.users)
      let team = random.pick(ConvergenceProgram.teams)
      let a = random.below(12)
      let choice = random.below(20)
      changesPolicy = choice >= 18
      text =
        switch choice {
        case 0:
          """
          insert into public.t (id, owner_id, a) values ('\(key)', '\(user)', \(a))
          on conflict (id) do update set a = excluded.a, owner_id = excluded.owner_id
          """
        case 1: "insert into public.t (id, owner_id, b) values ('\(key)', '\(user)', \(a)) on conflict do nothing"
        case 2: "update public.t set a = \(a) where id = '\(key)'"
        case 3: "update public.t set b = coalesce(b, 0) + 1, c = 'sql' where id = '\(key)'"
        case 4: "delete from public.t where id = '\(key)'"
        case 5:
          "delete from public.t where id = '\(key)'; insert into public.t (id, owner_id, a) values ('\(key)', '\(user)', \(a))"
        case 6: "update public.t set owner_id = '\(user)' where id = '\(key)'"
        case 7: "update public.t set id = '\(other)' where id = '\(key)'"
        case 8: "savepoint s; update public.t set a = 99; delete from public.p; rollback to s; release s"
        case 9: "update public.t set a = a, b = b"
        case 10: "update public.t set a = coalesce(a, 0) + 1 where owner_id = '\(user)'"
        case 11, 12: "insert into public.log (id, owner_id) values ('sql-\(random.next() % 1_000_000_000)', '\(user)')"
        case 13, 14:
          """
          insert into public.p (id, team, reader, a) values ('\(key)', '\(team)', '\(user)', \(a))
          on conflict (id) do update set team = excluded.team, reader = excluded.reader
          """
        case 15: "update public.p set team = '\(team)', a = \(a) where id = '\(key)'"
        case 16: "update public.p set reader = '\(user)' where id = '\(key)'"
        case 17: "delete from public.p where id = '\(key)'"
        case 18: "insert into public.shares values ('\(team)', '\(user)') on conflict do nothing"
        default: "delete from public.shares where team = '\(team)' and reader = '\(user)'"
        }
    }
  }
#endif
