#if Postgres
  import CPostgres
  import Glibc

  /// A connection of libpq. Used from one thread.
  final class PostgresHandle {
    let pointer: OpaquePointer
    private let address: PostgresAddress

    /// Connects; blocks until that is done.
    ///
    /// - Throws: `PostgresError` of class 08.
    init(_ address: PostgresAddress, name: String) throws(PostgresError) {
      self.address = address
      let keywords = ["connect_timeout", "dbname", "fallback_application_name", "client_encoding"]
      let values = ["10", address.url, name, "UTF8"]
      let made = Self.withTexts(keywords) { keywords in
        Self.withTexts(values) { values in PQconnectdbParams(keywords, values, 1) }
      }
      guard let made else { throw PostgresError("08001", "there is no memory for a connection") }
      pointer = made
      // From here on the connection is given up by `deinit`, which runs for an initialiser that throws, too.
      guard PQstatus(made) == CONNECTION_OK else {
        throw PostgresError("08001", address.reason(String(cString: PQerrorMessage(made))))
      }
      // Notices would go to standard error.
      PQsetNoticeReceiver(made, { _, _ in }, nil)
    }

    deinit { PQfinish(pointer) }

    /// Whether the server is still there, as far as is known here without asking it.
    var isAlive: Bool {
      // An idle connection has nothing to say but parameters that changed, or why it ends and then its end.
      while PQstatus(pointer) == CONNECTION_OK {
        var poll = pollfd(fd: PQsocket(pointer), events: Int16(POLLIN), revents: 0)
        guard Glibc.poll(&poll, 1, 0) > 0 else { return true }
        guard PQconsumeInput(pointer) == 1 else { return false }
      }
      return false
    }

    /// Calls `body` with a list of C strings, and nil at its end.
    static func withTexts<Result>(
      _ texts: [String?], _ body: (UnsafeMutablePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
      let copies = texts.map { text in text.flatMap { strdup($0) } }
      defer { for copy in copies { free(copy) } }
      let list = UnsafeMutablePointer<UnsafePointer<CChar>?>.allocate(capacity: copies.count + 1)
      defer { list.deallocate() }
      for (index, copy) in copies.enumerated() { list[index] = UnsafePointer(copy) }
      list[copies.count] = nil
      return body(list)
    }

    // MARK: Asking

    /// Runs several statements in one string, without parameters.
    func script(_ sql: String) throws(PostgresError) {
      _ = try rows(of: PQexec(pointer, sql))
    }

    func run(_ statement: PostgresStatement) throws(PostgresError) -> PostgresRows {
      try check(statement)
      let count = Int32(statement.parameters.count)
      let result = Self.withTexts(statement.parameters) { values in
        PQexecParams(pointer, statement.sql, count, nil, values, nil, nil, 0)
      }
      return try rows(of: result)
    }

    /// Sends the statements at once and reads their results; those after one that fails are not run.
    func pipeline(_ statements: [PostgresStatement]) throws(PostgresError) -> [PostgresRows] {
      for statement in statements { try check(statement) }
      guard PQenterPipelineMode(pointer) == 1 else { throw lost() }
      for statement in statements {
        let count = Int32(statement.parameters.count)
        let isSent = Self.withTexts(statement.parameters) { values in
          PQsendQueryParams(pointer, statement.sql, count, nil, values, nil, nil, 0) == 1
        }
        guard isSent else { throw lost() }
      }
      guard PQpipelineSync(pointer) == 1 else { throw lost() }
      var results: [PostgresRows] = []
      var failure: PostgresError?
      for _ in statements {
        while let result = PQgetResult(pointer) {
          if PQresultStatus(result) == PGRES_PIPELINE_ABORTED {
            PQclear(result)
            continue
          }
          do throws(PostgresError) {
            results.append(try rows(of: result))
          } catch {
            failure = failure ?? error
          }
        }
      }
      // The answer to the synchronisation.
      while let result = PQgetResult(pointer) {
        let isEnd = PQresultStatus(result) == PGRES_PIPELINE_SYNC
        PQclear(result)
        if isEnd { break }
      }
      let isOver = PQexitPipelineMode(pointer) == 1
      if let failure { throw failure }
      guard isOver, results.count == statements.count else { throw lost() }
      return results
    }

    private func check(_ statement: PostgresStatement) throws(PostgresError) {
      if statement.holdsNUL {
        throw PostgresError("22021", "a text holds the character NUL, which the database cannot store")
      }
    }

    /// Takes a result over.
    private func rows(of result: OpaquePointer?) throws(PostgresError) -> PostgresRows {
      guard let result else { throw lost() }
      defer { PQclear(result) }
      switch PQresultStatus(result) {
      case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_SINGLE_TUPLE, PGRES_EMPTY_QUERY: return PostgresRows(result)
      default: break
      }
      func field(_ code: UnicodeScalar) -> String? {
        PQresultErrorField(result, Int32(code.value)).map { String(cString: $0) }
      }
      guard let code = field("C") else { throw lost() }
      throw PostgresError(code, field("M") ?? "", detail: field("D"), hint: field("H"))
    }

    private func lost() -> PostgresError {
      PostgresError("08006", "the connection to the database was lost")
    }
  }
#endif
