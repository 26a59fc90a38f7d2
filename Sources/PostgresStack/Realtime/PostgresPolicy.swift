#if Postgres
  import HostKit
  import LocalStack

  /// Asks the row policies on `realtime.messages` who may use a topic, with a row that is never committed
  /// (https://supabase.com/docs/guides/realtime/authorization).
  struct PostgresPolicy: Sendable {
    /// Sessions of a role that may write to `realtime.messages` whatever its policies say.
    let pool: PostgresPool
    let log: HostLog

    func decide(_ question: RealtimeQuestion) async -> RealtimeDecision {
      let role = question.claims["role"]?.stringValue ?? "anon"
      let probe = "kizuna-probe-" + UUIDText.random()
      let row = PostgresStatement(
        "INSERT INTO realtime.messages (topic, extension, event, payload, private) "
          + "VALUES ($1, 'broadcast', $2, '{}', true)", [question.topic, probe])
      let caller = PostgresStatement(
        """
        SELECT set_config('role', $1, true), set_config('request.jwt.claims', $2, true),
          set_config('request.headers', '{}', true), set_config('realtime.topic', $3, true)
        """, [role, JSONWriter.text(question.claims), question.topic])
      let seen = PostgresStatement(
        "SELECT 1 FROM realtime.messages WHERE event = $1 AND topic = $2", [probe, question.topic])
      do throws(PostgresError) {
        switch question.access {
        case .read:
          let rows = try await pool.transaction([row, caller, seen], commits: false).rows
          return rows[2].count == 1 ? .allowed : .denied
        case .write:
          _ = try await pool.transaction([caller, row], commits: false)
          return .allowed
        }
      } catch {
        // A policy that raises an error refuses, as on the real server.
        guard error.isConnectionLost else { return .denied }
        log.warning("realtime.policy_unavailable", ["code": .string(error.code)])
        return .unavailable
      }
    }
  }
#endif
