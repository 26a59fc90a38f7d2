#if Postgres
  import HostKit

  /// A few sessions that requests share; who finds none free waits for its turn.
  final class PostgresPool: Sendable {
    private struct State {
      var idle: [PostgresConnection] = []
      var made = 0
      var waiting: [CheckedContinuation<PostgresConnection, Never>] = []
    }

    private let address: PostgresAddress
    private let greeting: String
    private let limit: Int
    private let state = Locked(State())

    init(_ address: PostgresAddress, limit: Int, greeting: String = "") {
      self.address = address
      self.limit = limit
      self.greeting = greeting
    }

    private func take() async -> PostgresConnection {
      await withCheckedContinuation { continuation in
        let connection = state.withLock { state -> PostgresConnection? in
          // The one used last: its caches are warm, and the others may end.
          if let idle = state.idle.popLast() { return idle }
          guard state.made < limit else {
            state.waiting.append(continuation)
            return nil
          }
          state.made += 1
          return PostgresConnection(address, greeting: greeting)
        }
        if let connection { continuation.resume(returning: connection) }
      }
    }

    private func giveBack(_ connection: PostgresConnection) {
      let next = state.withLock { state -> CheckedContinuation<PostgresConnection, Never>? in
        if state.waiting.isEmpty {
          state.idle.append(connection)
          return nil
        }
        return state.waiting.removeFirst()
      }
      next?.resume(returning: connection)
    }

    private func with<Value: Sendable>(
      _ body: (PostgresConnection) async throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
      let connection = await take()
      defer { giveBack(connection) }
      return try await body(connection)
    }

    func run(_ statement: PostgresStatement) async throws(PostgresError) -> PostgresRows {
      try await with { connection async throws(PostgresError) in try await connection.run(statement) }
    }

    func script(_ sql: String) async throws(PostgresError) {
      try await with { connection async throws(PostgresError) in try await connection.script(sql) }
    }

    /// See `PostgresConnection.transaction`.
    func transaction(
      _ statements: [PostgresStatement], commits: Bool = true
    ) async throws(PostgresError) -> (rows: [PostgresRows], endedAt: UInt64) {
      try await with { connection async throws(PostgresError) in
        try await connection.transaction(statements, commits: commits)
      }
    }

    /// Ends all sessions; none may be in use.
    func close() async {
      for connection in state.withLock({ $0.idle }) { await connection.close() }
    }
  }
#endif
