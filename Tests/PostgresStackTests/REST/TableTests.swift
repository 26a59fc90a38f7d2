#if Postgres
  import HostKit
  import PostgresTestSupport
  import Testing

  /// `/rest/v1/<table>` over a real database, as a client of plain tables uses it.
  @Suite(.enabled(if: PostgresInstallation.isPresent), .timeLimit(.minutes(5)))
  struct TableTests {
    private static let merge = ["Prefer": "resolution=merge-duplicates,return=representation"]
    private static let todos = "/rest/v1/todos"

    private func query(_ parameters: KeyValuePairs<String, String>) -> String {
      "?" + parameters.map { "\($0)=\(PercentCoding.encode($1))" }.joined(separator: "&")
    }

    private func uuid(_ n: Int) -> String { "00000000-0000-4000-8000-0000000000\(n < 10 ? "0" : "")\(n)" }

    @Test func upsertsByKeyAndByAnotherConstraint() async throws {
      try await ServedDatabase.with { served in
        let token = try await served.signIn()
        let columns = query(["columns": #""doc","id","n","tags","title""#])
        let first = try await served.send(
          "POST", Self.todos + columns,
          [
            ["id": .string(uuid(1)), "title": "a", "n": 1, "doc": ["k": [1, nil]], "tags": ["x", "y,z"], "other": 1],
            ["id": .string(uuid(2)), "title": nil, "n": 9_007_199_254_740_993, "doc": nil, "tags": nil],
          ], bearer: token, headers: Self.merge)
        #expect(first.status == 201)
        #expect(first.json[0]?["owner_id"] == .string(served.id(ServedDatabase.ann)))
        #expect(first.json[0]?["doc"] == ["k": [1, nil]])
        #expect(first.json[0]?["tags"] == ["x", "y,z"])
        #expect(first.json[1]?["n"] == 9_007_199_254_740_993)

        let again = try await served.send(
          "POST", Self.todos, ["id": .string(uuid(1)), "title": "b"], bearer: token, headers: Self.merge)
        #expect(again.status == 201)
        #expect(again.json[0]?["title"] == "b")
        #expect(again.json[0]?["n"] == 1, "what the body does not name stays")

        let other = try await served.send(
          "POST", Self.todos + query(["on_conflict": "owner_id,n"]),
          [["owner_id": .string(served.id(ServedDatabase.ann)), "n": 1, "title": "c"]], bearer: token,
          headers: Self.merge)
        #expect(other.json[0]?["id"] == .string(uuid(1)))
        #expect(other.json[0]?["title"] == "c")

        let ignored = try await served.send(
          "POST", Self.todos, ["id": .string(uuid(1)), "title": "d"], bearer: token,
          headers: ["Prefer": "resolution=ignore-duplicates,return=representation"])
        #expect((ignored.status, ignored.json) == (201, []))
        let plain = try await served.send("POST", Self.todos, ["id": .string(uuid(1)), "title": "e"], bearer: token)
        #expect((plain.status, plain.json["code"]) == (409, "23505"))
        let minimal = try await served.send("POST", Self.todos, ["id": .string(uuid(3))], bearer: token)
        #expect((minimal.status, minimal.json) == (201, .null))
        #expect(
          try await served.database.run("select title from public.todos order by id") == ["c", "", ""])
      }
    }

    @Test func deletesSoftlyAndForGood() async throws {
      try await ServedDatabase.with { served in
        let token = try await served.signIn()
        for n in 1...3 {
          _ = try await served.send("POST", Self.todos, ["id": .string(uuid(n))], bearer: token)
        }
        let list = #"in.("\#(uuid(1))",\#(uuid(2)),\#(uuid(9)))"#
        let soft = try await served.send(
          "PATCH", Self.todos + query(["id": list]), ["deletedAt": "2026-01-02T03:04:05.678Z"], bearer: token,
          headers: ["Prefer": "return=representation"])
        #expect(soft.status == 200)
        #expect(soft.json.arrayValue?.count == 2)
        #expect(soft.json[0]?["deletedAt"] == "2026-01-02T03:04:05.678+00:00")
        let quiet = try await served.send(
          "PATCH", Self.todos + query(["id": "eq." + uuid(3)]), ["title": "x"], bearer: token)
        #expect(quiet.status == 204)
        let gone = try await served.send(
          "DELETE", Self.todos + query(["deletedAt": "not.is.null"]), bearer: token,
          headers: ["Prefer": "return=representation"])
        #expect(gone.json.arrayValue?.count == 2)
        #expect(try await served.database.run("select title from public.todos") == ["x"])
      }
    }

    /// As many as one request carries: 256, by keys in the address some ten thousand bytes long.
    @Test func aWholeBatchAtOnce() async throws {
      try await ServedDatabase.with { served in
        let token = try await served.signIn()
        let keys = (0..<256).map { "00000000-0000-4000-8000-000000000\(100 + $0)" }
        let rows = JSONValue.array(keys.map { ["id": .string($0), "title": "t", "n": nil] })
        let made = try await served.send(
          "POST", Self.todos + query(["columns": #""id","n","title""#]), rows, bearer: token, headers: Self.merge)
        #expect(made.status == 201)
        #expect(made.json.arrayValue?.map { $0["id"] } == keys.map { .string($0) }, "in the order of the request")
        let path = Self.todos + query(["id": "in.(\(keys.joined(separator: ",")))"])
        #expect(path.utf8.count > 9_500)
        let deleted = try await served.send(
          "PATCH", path, ["deletedAt": "2026-01-02T03:04:05.678Z"], bearer: token,
          headers: ["Prefer": "return=representation"])
        #expect((deleted.status, deleted.json.arrayValue?.count) == (200, 256))
        // Made again after the deletion, which takes the tombstone away.
        let again = try await served.send(
          "POST", Self.todos, [["id": .string(keys[0]), "title": "u", "deletedAt": nil]], bearer: token,
          headers: Self.merge)
        #expect(again.json[0]?["deletedAt"] == .null)
        let open = try await served.send(
          "GET", Self.todos + query(["deletedAt": "is.null", "select": "title"]), bearer: token)
        #expect(open.json == [["title": "u"]])
      }
    }

    @Test func pagesByTimeAndKey() async throws {
      try await ServedDatabase.with { served in
        let token = try await served.signIn()
        // Twelve rows of four times, with microseconds.
        try await served.database.run(
          """
          insert into public.todos (id, owner_id, title, "updatedAt")
          select ('00000000-0000-4000-8000-0000000000' || lpad(i::text, 2, '0'))::uuid, '\(served.id(ServedDatabase.ann))',
            'row ' || i, '2026-01-01 00:00:00.123456+00'::timestamptz + (i / 3) * interval '1 microsecond'
          from generate_series(1, 12) i;
          insert into public.todos (owner_id, title) values ('\(served.id(ServedDatabase.bob))', 'hidden')
          """)
        var seen: [String] = []
        var cursor: (String, String)?
        while true {
          var parameters = "?select=*&owner_id=eq.\(served.id(ServedDatabase.ann))"
          if let (time, id) = cursor {
            parameters +=
              "&or="
              + PercentCoding.encode(#"(updatedAt.gt."\#(time)",and(updatedAt.eq."\#(time)",id.gt."\#(id)"))"#)
          }
          parameters += "&order=" + PercentCoding.encode("updatedAt.asc.nullslast,id.asc.nullslast") + "&limit=5"
          let page = try await served.send("GET", Self.todos + parameters, bearer: token)
          #expect(page.status == 200)
          let rows = page.json.arrayValue ?? []
          seen += rows.compactMap { $0["title"]?.stringValue }
          if rows.count < 5 { break }
          let last = try #require(rows.last)
          cursor = (try #require(last["updatedAt"]?.stringValue), try #require(last["id"]?.stringValue))
        }
        #expect(seen == (1...12).map { "row \($0)" })
      }
    }

    @Test func selectsOrdersAndCounts() async throws {
      try await ServedDatabase.with { served in
        let token = try await served.signIn()
        for n in 1...4 {
          _ = try await served.send("POST", Self.todos, ["n": .int(n), "title": n == 4 ? nil : "t"], bearer: token)
        }
        let some = try await served.send(
          "GET", Self.todos + query(["select": "n,name:title", "order": "n.desc", "limit": "2", "offset": "1"]),
          bearer: token, headers: ["Prefer": "count=exact"])
        #expect(some.json == [["n": 3, "name": "t"], ["n": 2, "name": "t"]])
        #expect(some.status == 206)
        #expect(some.header("content-range") == "1-2/4")
        let one = try await served.send(
          "GET", Self.todos + query(["n": "eq.2", "select": "n"]), bearer: token,
          headers: ["Accept": "application/vnd.pgrst.object+json"])
        #expect(one.json == ["n": 2])
        let none = try await served.send(
          "GET", Self.todos + query(["n": "gt.9"]), bearer: token,
          headers: ["Accept": "application/vnd.pgrst.object+json"])
        #expect((none.status, none.json["code"]) == (406, "PGRST116"))
        let nulls = try await served.send(
          "GET", Self.todos + query(["title": "is.null", "select": "n"]), bearer: token)
        #expect(nulls.json == [["n": 4]])
      }
    }

    @Test func errorsHaveTheirCodes() async throws {
      try await ServedDatabase.with { served in
        let token = try await served.signIn()
        let other: JSONValue = .string(served.id(ServedDatabase.bob))
        let cases: [(String, String, JSONValue?, Int, JSONValue)] = [
          ("POST", Self.todos, ["owner_id": other], 403, "42501"),
          ("POST", Self.todos, ["nonsense": 1], 400, "PGRST204"),
          ("POST", Self.todos, [["title": "a"], ["n": 1]], 400, "PGRST102"),
          ("POST", Self.todos, [1], 400, "PGRST102"), ("POST", Self.todos, ["n": "x"], 400, "22P02"),
          ("POST", Self.todos + "?on_conflict=title", ["title": "x"], 400, "42P10"),
          ("GET", Self.todos + "?nonsense=eq.1", nil, 400, "42703"),
          ("GET", Self.todos + "?select=nonsense", nil, 400, "42703"),
          ("GET", Self.todos + "?n=eq.x", nil, 400, "22P02"), ("GET", Self.todos + "?n=what.x", nil, 400, "PGRST100"),
          ("GET", Self.todos + "?limit=x", nil, 400, "PGRST100"), ("GET", "/rest/v1/nothing", nil, 404, "PGRST205"),
          ("DELETE", Self.todos + "?limit=1", nil, 400, "PGRST100"), ("PUT", Self.todos, [:], 405, "PGRST117"),
          ("GET", "/rest/v1/a/b", nil, 404, "PGRST125"),
        ]
        for (method, path, body, status, code) in cases {
          let headers = path.contains("on_conflict") ? Self.merge : [:]
          let answer = try await served.send(method, path, body, bearer: token, headers: headers)
          #expect((answer.status, answer.json["code"]) == (status, code), "\(method) \(path): \(answer.json)")
        }
        // Named as the request names it, and not as the statement might.
        for path in ["?nonsense=eq.1", "?select=nonsense", "?order=nonsense"] {
          let answer = try await served.send("GET", Self.todos + path, bearer: token)
          #expect(answer.json["message"] == "column todos.nonsense does not exist", "\(path)")
        }
        for method in ["GET", "POST", "PATCH", "DELETE"] {
          let answer = try await served.send(method, Self.todos, method == "GET" ? nil : ["title": "x"])
          #expect((answer.status, answer.json["code"]) == (401, "42501"), "\(method): \(answer.json)")
        }
      }
    }

    @Test func namesAndValuesDoNothingElse() async throws {
      try await ServedDatabase.with { served in
        let token = try await served.signIn()
        _ = try await served.send("POST", Self.todos, ["title": "kept"], bearer: token)
        let hostile = [
          #"todos"; drop table public.todos; --"#, "todos; drop table public.todos", "id) or true --", "' or '1'='1",
          "*/ drop table public.todos /*", "title\0", "1=1", #"x" is null or "title"#,
        ]
        for name in hostile {
          let escaped = PercentCoding.encode(name)
          let quoted = PercentCoding.encode("\"" + name.filter { $0 != "\"" } + "\"")
          var paths = ["/rest/v1/\(escaped)"]
          for name in [escaped, quoted] {
            paths += [
              Self.todos + "?select=\(name)", Self.todos + "?order=\(name)", Self.todos + "?\(name)=eq.1",
              Self.todos + "?or=(\(name).eq.1)",
            ]
          }
          for path in paths {
            let answer = try await served.send("GET", path, bearer: token)
            #expect([400, 404].contains(answer.status), "\(path): \(answer.status) \(answer.json)")
          }
          for path in [Self.todos + "?columns=\(quoted)", Self.todos + "?on_conflict=\(quoted)"] {
            let answer = try await served.send("POST", path, ["title": "x"], bearer: token, headers: Self.merge)
            #expect([400, 404].contains(answer.status), "\(path): \(answer.status) \(answer.json)")
          }
          let body = try await served.send("POST", Self.todos, .object([name: 1]), bearer: token)
          #expect(body.status == 400, "\(name): \(body.json)")
          let filter = try await served.send("DELETE", Self.todos + "?title=eq.\(escaped)", bearer: token)
          #expect(filter.status == (name.contains("\0") ? 400 : 204))
        }
        #expect(try await served.database.run("select title from public.todos") == ["kept"])
      }
    }

    @Test func aTableOfTheConfigurationIsMadeWithItsPolicy() async throws {
      try await ServedDatabase.with(change: { configuration in
        configuration.tables = ["notes": .init(bucketColumn: "owner_id", columns: ["title": .text]), "open": .init()]
      }) { served in
        let ann = try await served.signIn()
        let bob = try await served.signIn(ServedDatabase.bob)
        let made = try await served.send(
          "POST", "/rest/v1/notes", ["title": "x"], bearer: ann, headers: ["Prefer": "return=representation"])
        #expect(made.json[0]?["owner_id"] == .string(served.id(ServedDatabase.ann)))
        #expect(try await served.send("GET", "/rest/v1/notes", bearer: ann).json.arrayValue?.count == 1)
        #expect(try await served.send("GET", "/rest/v1/notes", bearer: bob).json == [])
        #expect(try await served.send("GET", "/rest/v1/open", bearer: bob).status == 200)
      }
    }
  }
#endif
