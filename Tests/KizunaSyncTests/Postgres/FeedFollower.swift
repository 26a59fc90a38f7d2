#if Postgres
  import HostKit
  import SyncServer

  @testable import KizunaSync

  /// A client that writes nothing: it keeps what the pages bring, and a cursor.
  actor FeedFollower {
    let user: String
    private let pull: @Sendable (JSONValue) async throws -> JSONValue
    private var cursor = "0"
    private var rows: [String: [String: RowMap]] = [:]

    init(_ user: String, _ pull: @escaping @Sendable (JSONValue) async throws -> JSONValue) {
      self.user = user
      self.pull = pull
    }

    /// Up to the end of the feed.
    func follow() async throws {
      let own: JSONValue = ["owner_id": .string(user)]
      let teams: [JSONValue] = ConvergenceProgram.teams.map { ["table": "p", "params": ["team": .string($0)]] }
      var hasMore = true
      while hasMore {
        let page = try await pull([
          "buckets": .array([["table": "t", "params": own], ["table": "log", "params": own]] + teams),
          "cursor": .string(cursor), "limit": 3, "schema_version": 1,
        ])
        guard page["signal"] == .null else {
          (cursor, rows) = ("0", [:])
          continue
        }
        for row in page["rows"]?.arrayValue ?? [] {
          rows[row["table"]?.stringValue ?? "", default: [:]][row["pk"]?.stringValue ?? ""] = row["row"]?.objectValue
        }
        for tombstone in page["tombstones"]?.arrayValue ?? [] {
          rows[tombstone["table"]?.stringValue ?? ""]?[tombstone["pk"]?.stringValue ?? ""] = nil
        }
        cursor = page["cursor"]?.stringValue ?? ""
        hasMore = page["has_more"] == true
      }
    }

    /// - Parameter shown: what the server shows the user at this moment.
    func problem(_ shown: ShownRows) -> String? {
      for (table, wanted) in shown.tables {
        var (has, wanted) = (rows[table] ?? [:], wanted)
        if table == "p" {
          // What was hidden left no tombstone.
          wanted = wanted.filter { !shown.unannounced.contains($0.key) }
          has = has.filter { wanted[$0.key] != nil }
        }
        if has != wanted {
          return "who follows the feed of \(user) to \(cursor) has of \(table) \(has)\nserver shows \(wanted)"
        }
      }
      return nil
    }
  }
#endif
