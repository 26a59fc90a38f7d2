#if Postgres
  import HostKit
  import PostgresTestSupport
  import Testing

  /// `/rest/v1/rpc/<function>` over a real database, with functions that only the test knows.
  @Suite(.enabled(if: PostgresInstallation.isPresent), .timeLimit(.minutes(5)))
  struct FunctionCallTests {
    private static let functions = """
      create function kizunasync.who() returns jsonb language sql stable as $$
        select jsonb_build_object(
          'user', current_user, 'session', session_user, 'uid', auth.uid(), 'role', auth.role(),
          'probe', current_setting('request.headers')::jsonb ->> 'x-probe',
          'method', current_setting('request.method'), 'path', current_setting('request.path'))
      $$;
      create function kizunasync.echo(j jsonb, t text default 'none', i integer default 7, l text[] default null, big bigint default null)
      returns jsonb language sql as $$ select jsonb_build_object('j', j, 't', t, 'i', i, 'l', l, 'big', big) $$;
      create function kizunasync.fail(code text, message text) returns void language plpgsql as $$
      begin
        insert into public.todos (title) values ('of a call that fails');
        raise exception using errcode = code, message = message, detail = 'd', hint = 'h';
      end $$;
      create function kizunasync.nothing() returns void language sql as 'select 1';
      create function kizunasync.many(n integer) returns setof integer language sql as 'select generate_series(1, n)';
      create function kizunasync.pair() returns table (a integer, b text) language sql as $$ select 1, 'x' $$;
      create function kizunasync.one(out a integer, out b text) language sql as $$ select 1, 'x' $$;
      create function kizunasync.whole(jsonb) returns jsonb language sql as 'select $1';
      create function kizunasync.twice(a integer) returns integer language sql as 'select 1';
      create function kizunasync.twice(a text) returns integer language sql as 'select 2';
      create function kizunasync.hidden() returns integer language sql as 'select 1';
      revoke execute on function kizunasync.hidden() from public, anon, authenticated;
      create table public.pairs (a integer, b integer references public.pairs_of (id) deferrable initially deferred);
      create function kizunasync.late() returns integer language sql as 'insert into public.pairs values (1, 5) returning a';
      """
    private static let setUp = "create table public.pairs_of (id integer primary key);" + functions

    @Test func runsUnderTheCallersRoleWithItsClaims() async throws {
      try await ServedDatabase.with(Self.setUp) { served in
        let token = try await served.signIn()
        let answer = try await served.call("who", [:], bearer: token, headers: ["X-Probe": "p"])
        #expect(answer.status == 200)
        #expect(
          answer.json == [
            "user": "authenticated", "session": "authenticator", "uid": .string(served.id(ServedDatabase.ann)),
            "role": "authenticated", "probe": "p", "method": "POST", "path": "/rpc/who",
          ])
        // Nothing of it is left for whoever comes next on the same session.
        let service = served.token(["role": "service_role"])
        try await served.database.run("grant usage on schema kizunasync to service_role, anon")
        let next = try await served.call("who", [:], bearer: service)
        #expect(next.json["user"] == "service_role")
        #expect(next.json["uid"] == .null)
        #expect(next.json["probe"] == .null)
        let anonymous = try await served.call("who", [:], bearer: nil)
        #expect(anonymous.json["user"] == "anon")
        #expect(anonymous.json["role"] == "anon")
      }
    }

    @Test func takesArgumentsByName() async throws {
      try await ServedDatabase.with(Self.setUp) { served in
        let token = try await served.signIn()
        let all = try await served.call(
          "echo", ["j": [1, nil, "x"], "t": nil, "i": "12", "l": ["a", "b,\"c"], "big": 9_007_199_254_740_993],
          bearer: token)
        #expect(
          all.json == [
            "j": [1, nil, "x"], "t": nil, "i": 12, "l": ["a", "b,\"c"], "big": 9_007_199_254_740_993,
          ])
        let few = try await served.call("echo", ["j": nil], bearer: token)
        #expect(few.json == ["j": nil, "t": "none", "i": 7, "l": nil, "big": nil])
        // Numbers are kept digit by digit.
        let exact = try await served.send(
          "POST", "/rest/v1/rpc/echo", bytes: Array(#"{"j":{"n":12345678901234567890.123456789}}"#.utf8), bearer: token,
          headers: ["Content-Profile": "kizunasync"])
        #expect(JSONWriter.text(exact.json["j"]?["n"] ?? nil) == "12345678901234567890.123456789")
      }
    }

    @Test func rendersEveryKindOfResult() async throws {
      try await ServedDatabase.with(Self.setUp) { served in
        let token = try await served.signIn()
        let nothing = try await served.call("nothing", [:], bearer: token)
        #expect(nothing.status == 204)
        let committed = try #require(nothing.header("x-localstack-committed-ns").flatMap { UInt64($0) })
        #expect(committed < SystemClock.monotonic)
        #expect(try await served.call("many", ["n": 3], bearer: token).json == [1, 2, 3])
        #expect(try await served.call("many", ["n": 0], bearer: token).json == [])
        #expect(try await served.call("pair", [:], bearer: token).json == [["a": 1, "b": "x"]])
        #expect(try await served.call("one", [:], bearer: token).json == ["a": 1, "b": "x"])
        #expect(try await served.call("whole", ["any": [1]], bearer: token).json == ["any": [1]])
        #expect(try await served.call("whole", [1, 2], bearer: token).json == [1, 2])
      }
    }

    @Test(arguments: [
      ("P0001", 400), ("22023", 400), ("KZP02", 400), ("0A000", 400), ("42501", 403), ("23505", 409), ("PT402", 402),
      ("40001", 500),
    ])
    func anErrorIsToldAndLeavesNothing(code: String, status: Int) async throws {
      try await ServedDatabase.with(Self.setUp) { served in
        let token = try await served.signIn()
        let answer = try await served.call("fail", ["code": .string(code), "message": "it's \"so\""], bearer: token)
        #expect(answer.status == status)
        #expect(answer.json == ["code": .string(code), "message": "it's \"so\"", "details": "d", "hint": "h"])
        #expect(try await served.database.run("select count(*) from public.todos") == ["0"])
      }
    }

    @Test func whatIsNotThereIsNamed() async throws {
      try await ServedDatabase.with(Self.setUp) { served in
        let token = try await served.signIn()
        for (function, body) in [("none", [:]), ("echo", ["j": 1, "unknown": 2]), ("echo", ["t": "x"]), ("many", [:])]
          as [(String, JSONValue)]
        {
          let answer = try await served.call(function, body, bearer: token)
          #expect(answer.status == 404)
          #expect(answer.json["code"] == "PGRST202")
          #expect(answer.json["message"]?.stringValue?.contains("kizunasync.\(function)") == true)
        }
        let unsure = try await served.call("twice", ["a": 1], bearer: token)
        #expect((unsure.status, unsure.json["code"]) == (300, "PGRST203"))
        let get = try await served.send(
          "GET", "/rest/v1/rpc/who", bearer: token, headers: ["Accept-Profile": "kizunasync"])
        #expect((get.status, get.json["code"]) == (405, "PGRST101"))
        let schema = try await served.call("who", [:], bearer: token, headers: ["Content-Profile": "auth"])
        #expect((schema.status, schema.json["code"]) == (406, "PGRST106"))
        let otherSchema = try await served.send("POST", "/rest/v1/rpc/who", [:], bearer: token)
        #expect((otherSchema.status, otherSchema.json["code"]) == (404, "PGRST202"))
        let noJSON = try await served.send(
          "POST", "/rest/v1/rpc/echo", bytes: Array("{".utf8), bearer: token,
          headers: ["Content-Profile": "kizunasync"])
        #expect((noJSON.status, noJSON.json["code"]) == (400, "PGRST102"))
      }
    }

    @Test func whoMayNotIsRefused() async throws {
      try await ServedDatabase.with(Self.setUp) { served in
        let token = try await served.signIn()
        let anonymous = try await served.call("who", [:], bearer: nil)
        #expect((anonymous.status, anonymous.json["code"]) == (401, "42501"))
        #expect(anonymous.header("www-authenticate") == "Bearer")
        let key = try await served.call("who", [:], bearer: served.stack.publishableKey)
        #expect((key.status, key.json["code"]) == (401, "42501"))
        let hidden = try await served.call("hidden", [:], bearer: token)
        #expect((hidden.status, hidden.json["code"]) == (403, "42501"))
        let expired = try await served.call("who", [:], bearer: served.token(["role": "authenticated"], lifetime: -60))
        #expect((expired.status, expired.json["code"]) == (401, "PGRST301"))
        let forged = TestJWT.sign(["role": "service_role", "exp": 9_999_999_999], secret: "another secret")
        #expect(try await served.call("who", [:], bearer: forged).status == 401)
        for role in ["postgres", "nobody", "pg_read_all_data", "a\"; set role postgres; --"] {
          let answer = try await served.call("who", [:], bearer: served.token(["role": .string(role)]))
          #expect([401, 403].contains(answer.status), "\(role): \(answer.json)")
        }
      }
    }

    @Test func aConstraintThatIsCheckedAtTheCommitRefuses() async throws {
      try await ServedDatabase.with(Self.setUp) { served in
        let answer = try await served.call("late", [:], bearer: served.token(["role": "service_role"]))
        // The service role has no right to the schema here.
        #expect(answer.status == 403)
        try await served.database.run("grant usage on schema kizunasync to service_role")
        let late = try await served.call("late", [:], bearer: served.token(["role": "service_role"]))
        #expect((late.status, late.json["code"]) == (409, "23503"))
        #expect(try await served.database.run("select count(*) from public.pairs") == ["0"])
      }
    }

    @Test func aFunctionThatIsReplacedIsCalledAsItIsNow() async throws {
      try await ServedDatabase.with(Self.setUp) { served in
        let token = try await served.signIn()
        #expect(try await served.call("many", ["n": 1], bearer: token).json == [1])
        try await served.database.run(
          """
          drop function kizunasync.many(integer);
          create function kizunasync.many(n jsonb, more text default '') returns jsonb language sql as 'select n'
          """)
        #expect(try await served.call("many", ["n": 1], bearer: token).json == 1)
        #expect(try await served.call("many", ["n": 1, "more": "x"], bearer: token).json == 1)
      }
    }

    @Test func namesInTheRequestDoNothingElse() async throws {
      try await ServedDatabase.with(Self.setUp) { served in
        let token = try await served.signIn()
        let hostile = [
          "who(); drop table public.todos; --", "who\"; drop table public.todos; --", "who\0x", "'||'", "$1",
        ]
        for name in hostile {
          let path = try await served.call(PercentCoding.encode(name), [:], bearer: token)
          #expect([400, 404].contains(path.status), "\(name): \(path.json)")
          let argument = try await served.call("echo", .object([name: 1, "j": 1]), bearer: token)
          #expect([400, 404].contains(argument.status), "\(name): \(argument.json)")
          let value = try await served.call("echo", ["j": .string(name), "t": .string(name)], bearer: token)
          if name.contains("\0") {
            #expect(value.status == 400)
          } else {
            #expect(value.json["j"] == .string(name))
            #expect(value.json["t"] == .string(name))
          }
        }
        #expect(try await served.database.run("select count(*) from public.todos") == ["0"])
      }
    }
  }
#endif
