#if Postgres
  import CPostgres
  import HostKit

  /// One session of the database, on a thread of its own. It connects when it is first used, and again when the server
  /// has ended the session.
  actor PostgresConnection {
    private let thread: SerialThread
    private let address: PostgresAddress
    private let greeting: String
    private var handle: PostgresHandle?

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// - Parameter greeting: SQL that begins every session.
    init(_ address: PostgresAddress, greeting: String = "") {
      self.address = address
      self.greeting = greeting
      thread = SerialThread(name: "kizuna-postgres")
    }

    deinit { thread.stop() }

    private func ready() throws(PostgresError) -> PostgresHandle {
      if let handle, handle.isAlive { return handle }
      handle = nil
      let made = try PostgresHandle(address, name: "kizuna-localstack")
      if !greeting.isEmpty { try made.script(greeting) }
      handle = made
      return made
    }

    func run(_ statement: PostgresStatement) throws(PostgresError) -> PostgresRows {
      try ready().run(statement)
    }

    /// Several statements in one string, without parameters.
    func script(_ sql: String) throws(PostgresError) {
      try ready().script(sql)
    }

    /// Runs the statements in one transaction, which is committed, or rolled back where that is asked for or one fails.
    ///
    /// - Returns: the results, and when that of the end was there (`CLOCK_MONOTONIC`).
    func transaction(
      _ statements: [PostgresStatement], commits: Bool = true
    ) throws(PostgresError) -> (rows: [PostgresRows], endedAt: UInt64) {
      let handle = try ready()
      let all = [PostgresStatement("BEGIN")] + statements + [PostgresStatement(commits ? "COMMIT" : "ROLLBACK")]
      do throws(PostgresError) {
        let results = try handle.pipeline(all)
        return (Array(results[1..<(results.count - 1)]), SystemClock.monotonic)
      } catch {
        if error.isConnectionLost || PQtransactionStatus(handle.pointer) == PQTRANS_UNKNOWN {
          self.handle = nil
        } else {
          // Where this fails the session is over, which is noticed at its next use.
          try? handle.script("ROLLBACK")
        }
        throw error
      }
    }

    /// Ends the session. A later use begins another.
    func close() {
      handle = nil
    }
  }
#endif
