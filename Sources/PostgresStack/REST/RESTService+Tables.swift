#if Postgres
  import HostKit
  import LocalStack

  extension RESTService {
    func table(
      _ request: StackRequest, _ name: Catalogue.Name, _ context: RESTContext
    ) async throws(RESTError) -> StackResponse {
      let query = try TableQuery(request)
      let statement = TableStatement(name, query)
      let preferences = Preferences(request)
      do throws(PostgresError) {
        switch request.method {
        case "GET", "HEAD": return try await read(request, name, statement, preferences, context)
        case "POST", "PATCH", "DELETE":
          return try await write(request, name, statement, preferences, context)
        default:
          return RESTError(405, "PGRST117", "Unsupported HTTP method: \(request.method)").response()
        }
      } catch {
        throw RESTError(error, isAnonymous: context.isAnonymous)
      }
    }

    // MARK: Reading

    private func read(
      _ request: StackRequest, _ name: Catalogue.Name, _ statement: TableStatement, _ preferences: Preferences,
      _ context: RESTContext
    ) async throws(PostgresError) -> StackResponse {
      guard try await catalogue.table(name, where: { _ in true }) != nil else { return Self.noTable(name).response() }
      let (rows, _) = try await run(
        statement.select(countsAll: preferences.countsExactly), context, schema: name.schema)
      let count = rows.text(0, 1).flatMap { Int($0) } ?? 0
      let total = rows.text(0, 2).flatMap { Int($0) }
      let offset = statement.query.offset ?? 0
      var body = rows.bytes(0, 0) ?? Array("[]".utf8)
      if Self.wantsOne(request) {
        guard count == 1 else { return Self.notOne(count).response() }
        // The array holds one row.
        body = Array(body.drop { $0 != UInt8(ascii: "{") })
        if let end = body.lastIndex(of: UInt8(ascii: "]")) { body.removeSubrange(end...) }
      }
      let range = (count == 0 ? "*" : "\(offset)-\(offset + count - 1)") + "/" + (total.map { "\($0)" } ?? "*")
      return StackResponse(
        status: total.map { $0 > count ? 206 : 200 } ?? 200,
        headers: [Self.jsonType, StackHeader("content-range", range)] + preferences.headers, body: body)
    }

    private static func wantsOne(_ request: StackRequest) -> Bool {
      request.header("accept")?.hasPrefix("application/vnd.pgrst.object+json") == true
    }

    private static func notOne(_ count: Int) -> RESTError {
      RESTError(
        406, "PGRST116", "Cannot coerce the result to a single JSON object",
        details: "The result contains \(count) rows")
    }

    private static func noTable(_ name: Catalogue.Name) -> RESTError {
      RESTError(404, "PGRST205", "Could not find the table '\(name.schema).\(name.name)' in the schema cache")
    }

    // MARK: Writing

    private func write(
      _ request: StackRequest, _ name: Catalogue.Name, _ statement: TableStatement, _ preferences: Preferences,
      _ context: RESTContext
    ) async throws(PostgresError) -> StackResponse {
      do throws(RESTError) {
        if Self.wantsOne(request) {
          throw RESTError(
            406, "PGRST107", "None of these media types are available: application/vnd.pgrst.object+json",
            details: "kizuna-localstack answers writes with arrays")
        }
        if statement.query.limit != nil || statement.query.offset != nil {
          throw FilterParser.refusal("limit and offset are for reading")
        }
        let writing = try Writing(request, statement.query, body(of:))
        return try await write(writing, name, statement, preferences, context).get()
      } catch {
        return error.response()
      }
    }

    private func write(
      _ writing: Writing, _ name: Catalogue.Name, _ statement: TableStatement, _ preferences: Preferences,
      _ context: RESTContext
    ) async throws(RESTError) -> Result<StackResponse, RESTError> {
      do throws(PostgresError) {
        let columns = writing.columns
        let shape = try await catalogue.table(name) { $0.columns.isSuperset(of: columns) }
        guard let shape else { return .failure(Self.noTable(name)) }
        if let unknown = columns.first(where: { !shape.columns.contains($0) }) {
          return .failure(
            RESTError(
              400, "PGRST204", "Could not find the '\(unknown)' column of '\(name.name)' in the schema cache"))
        }
        let returnsRows = preferences.returnsRows
        let sql: PostgresStatement?
        switch writing.kind {
        case .delete: sql = statement.delete(returnsRows: returnsRows)
        case .update:
          sql = columns.isEmpty ? nil : statement.update(writing.body, columns: columns, returnsRows: returnsRows)
        case .insert:
          sql =
            writing.isEmpty
            ? nil
            : statement.insert(
              writing.body, columns: columns, conflict: statement.query.onConflict ?? shape.primaryKey,
              resolution: preferences.resolution, returnsRows: returnsRows)
        }
        var rows: [UInt8]?
        var times: [StackHeader] = []
        if let sql {
          let answer = try await run(sql, context, schema: name.schema)
          rows = answer.rows.bytes(0, 0)
          times = Self.times(answer.endedAt)
        }
        let isInsert = writing.kind == .insert
        guard returnsRows else {
          return .success(StackResponse(status: isInsert ? 201 : 204, headers: preferences.headers + times))
        }
        return .success(
          StackResponse(
            status: isInsert ? 201 : 200, headers: [Self.jsonType] + preferences.headers + times,
            body: rows ?? Array("[]".utf8)))
      } catch {
        throw RESTError(error, isAnonymous: context.isAnonymous)
      }
    }
  }

  /// What a writing request wants written.
  private struct Writing {
    enum Kind { case insert, update, delete }

    let kind: Kind
    /// Sorted, so that equal requests make equal statements.
    let columns: [String]
    /// JSON for the database: an array of rows, or one.
    let body: String
    /// There is no row in it.
    let isEmpty: Bool

    init(
      _ request: StackRequest, _ query: TableQuery, _ read: (StackRequest) throws(RESTError) -> JSONValue
    ) throws(RESTError) {
      switch request.method {
      case "DELETE":
        (kind, columns, body, isEmpty) = (.delete, [], "", false)
      case "PATCH":
        guard let object = try read(request).objectValue else { throw Self.unreadable }
        let names = query.columns ?? Array(object.keys)
        (kind, columns, isEmpty) = (.update, Array(Set(names)).sorted(), false)
        body = String(decoding: request.body, as: UTF8.self)
      default:
        let value = try read(request)
        let text = String(decoding: request.body, as: UTF8.self)
        let isArray = value.arrayValue != nil
        let objects = (value.arrayValue ?? [value]).map(\.objectValue)
        var names = query.columns
        for object in objects {
          guard let object else { throw Self.unreadable }
          let keys = Array(object.keys)
          if let known = names {
            if query.columns == nil, Set(known) != Set(keys) {
              throw RESTError(400, "PGRST102", "All object keys must match")
            }
          } else {
            names = keys
          }
        }
        (kind, columns) = (.insert, Array(Set(names ?? [])).sorted())
        body = isArray ? text : "[" + text + "]"
        isEmpty = objects.isEmpty
      }
    }

    private static let unreadable = RESTError(400, "PGRST102", "Empty or invalid json")
  }
#endif
