#if Postgres
  import HostKit
  import LocalStack
  import PostgresStack
  import PostgresTestSupport
  import Testing

  /// Sign-in over the users table of a real database.
  @Suite(.enabled(if: PostgresInstallation.isPresent), .timeLimit(.minutes(5)))
  struct AuthTests {
    private func refresh(_ served: ServedDatabase, _ token: JSONValue?) async throws -> ServedDatabase.Answer {
      try await served.send("POST", "/auth/v1/token?grant_type=refresh_token", ["refresh_token": token ?? nil])
    }

    private func signIn(_ served: ServedDatabase, password: String = "pw") async throws -> ServedDatabase.Answer {
      try await served.send(
        "POST", "/auth/v1/token?grant_type=password",
        ["email": .string(ServedDatabase.ann.uppercased()), "password": .string(password)])
    }

    @Test func signsInAndTellsWhoATokenIs() async throws {
      try await ServedDatabase.with { served in
        let answer = try await signIn(served)
        #expect(answer.status == 200)
        #expect(answer.json["user"]?["email"] == .string(ServedDatabase.ann))
        let token = try #require(answer.json["access_token"]?.stringValue)
        let user = try await served.send("GET", "/auth/v1/user", bearer: token)
        #expect(user.json["id"] == .string(served.id(ServedDatabase.ann)))
        let wrong = try await signIn(served, password: "pW")
        #expect((wrong.status, wrong.json["error_code"]) == (400, "invalid_credentials"))
        let nobody = try await served.send(
          "POST", "/auth/v1/token?grant_type=password", ["email": "x' or '1'='1", "password": "pw"])
        #expect((nobody.status, nobody.json["error_code"]) == (400, "invalid_credentials"))
        // Somebody the database knows, and no configuration.
        try await served.database.run(
          """
          insert into auth.users (email, encrypted_password)
          values ('carl@example.com', extensions.crypt('of SQL', extensions.gen_salt('bf', 4)))
          """)
        let carl = try await served.send(
          "POST", "/auth/v1/token?grant_type=password", ["email": "carl@example.com", "password": "of SQL"])
        #expect(carl.status == 200)
        // The passwords are nowhere.
        #expect(try await served.database.dump(["--data-only"]).allSatisfy { !$0.contains("\tpw\t") })
      }
    }

    @Test func aRefreshTokenIsUsedOnce() async throws {
      try await ServedDatabase.with(change: { $0.refreshReuseInterval = 0 }) { served in
        let first = try await signIn(served).json["refresh_token"]
        let second = try await refresh(served, first).json["refresh_token"]
        #expect(second != nil && second != first)
        // The answer was lost: the same token again.
        #expect(try await refresh(served, first).json["refresh_token"] == second)
        let third = try await refresh(served, second).json["refresh_token"]
        try await served.database.run("update auth.refresh_tokens set updated_at = updated_at - interval '1 hour'")
        let stolen = try await refresh(served, first)
        #expect((stolen.status, stolen.json["error_code"]) == (400, "refresh_token_already_used"))
        let over = try await refresh(served, third)
        #expect((over.status, over.json["error_code"]) == (400, "refresh_token_not_found"))
      }
    }

    @Test func aDatabaseThatCannotKeepPasswordsIsToldAsSuch() async throws {
      try await ServedDatabase.with { served in
        try await served.database.run("drop extension pgcrypto")
        var options = PostgresStack.Options()
        options.appliesScaffolding = false
        let configuration = LocalStackConfiguration(tables: [:], users: [.init(email: "x@example.com", password: "pw")])
        do {
          _ = try await PostgresStack.start(PostgresAddress(served.database.url()), configuration, options: options)
          Issue.record("it has started")
        } catch let error as PostgresStackError {
          #expect(error.description.contains("lacks the extension pgcrypto"))
        }
      }
    }

    @Test func signsOut() async throws {
      try await ServedDatabase.with { served in
        let here = try await signIn(served)
        let there = try await signIn(served)
        let token = try #require(here.json["access_token"]?.stringValue)
        #expect(try await served.send("POST", "/auth/v1/logout?scope=others", bearer: token).status == 204)
        #expect(try await refresh(served, there.json["refresh_token"]).status == 400)
        let kept = try await refresh(served, here.json["refresh_token"])
        #expect(kept.status == 200)
        #expect(try await served.send("POST", "/auth/v1/logout", bearer: token).status == 204)
        #expect(try await refresh(served, kept.json["refresh_token"]).status == 400)
      }
    }
  }
#endif
