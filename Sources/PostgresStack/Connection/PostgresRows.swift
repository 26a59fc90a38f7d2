#if Postgres
  import CPostgres

  /// A result: cells as the bytes of their texts.
  struct PostgresRows: Sendable {
    let cells: [[[UInt8]?]]

    init(_ result: OpaquePointer) {
      let columns = PQnfields(result)
      cells = (0..<PQntuples(result)).map { row in
        (0..<columns).map { column in
          if PQgetisnull(result, row, column) != 0 { return nil }
          let length = Int(PQgetlength(result, row, column))
          guard let value = PQgetvalue(result, row, column) else { return nil }
          return Array(UnsafeRawBufferPointer(start: value, count: length))
        }
      }
    }

    init() { cells = [] }

    /// A cell; nil for NULL and where there is none.
    func bytes(_ row: Int, _ column: Int) -> [UInt8]? {
      guard cells.indices.contains(row), cells[row].indices.contains(column) else { return nil }
      return cells[row][column]
    }

    func text(_ row: Int, _ column: Int) -> String? {
      bytes(row, column).map { String(decoding: $0, as: UTF8.self) }
    }

    var count: Int { cells.count }
  }
#endif
