#if Postgres
  import Testing

  @testable import PostgresStack

  @Suite struct FilterParserTests {
    private func sql(_ filter: Filter) -> (String, [String?]) {
      var text = SQLText()
      let sql = filter.sql(&text, table: "t")
      return (sql, text.parameters)
    }

    @Test(
      arguments: [
        ("eq.1", #"t."c" = $1"#, ["1"]), ("neq.a.b", #"t."c" <> $1"#, ["a.b"]),
        ("gte.2026-01-01T00:00:00+00:00", #"t."c" >= $1"#, ["2026-01-01T00:00:00+00:00"]),
        ("is.null", #"t."c" IS NULL"#, []), ("not.is.null", #"NOT (t."c" IS NULL)"#, []),
        ("is.true", #"t."c" IS TRUE"#, []), ("like.*a*", #"t."c" LIKE $1"#, ["%a%"]),
        ("eq.*a*", #"t."c" = $1"#, ["*a*"]),
        ("in.(1,2)", #"t."c" = ANY($1)"#, [#"{"1","2"}"#]), ("in.()", #"t."c" = ANY($1)"#, ["{}"]),
        (#"in.("a,b","c\"d\\")"#, #"t."c" = ANY($1)"#, [#"{"a,b","c\"d\\"}"#]),
        ("not.in.(x)", #"NOT (t."c" = ANY($1))"#, [#"{"x"}"#]), ("eq.", #"t."c" = $1"#, [""]),
        ("eq.'; drop table x; --", #"t."c" = $1"#, ["'; drop table x; --"]), ("cs.{a,b}", #"t."c" @> $1"#, ["{a,b}"]),
      ] as [(String, String, [String])])
    func reads(text: String, expected: String, parameters: [String]) throws {
      let (sql, found) = sql(try FilterParser.filter(column: "c", text))
      #expect(sql == expected)
      #expect(found == parameters)
    }

    @Test func readsTheCursorOfATable() throws {
      let filter = try FilterParser.group(
        "or", #"(updatedAt.gt."2026-01-01T00:00:00.123456+00:00",and(updatedAt.eq."a,b)",id.gt."q\"x"))"#)
      let (sql, parameters) = sql(filter)
      #expect(sql == #"(t."updatedAt" > $1 OR (t."updatedAt" = $2 AND t."id" > $3))"#)
      #expect(parameters == ["2026-01-01T00:00:00.123456+00:00", "a,b)", #"q"x"#])
    }

    @Test(arguments: [
      ("or", "(a.eq.1,not.and(b.is.null,c.in.(1,2)))", #"(t."a" = $1 OR NOT ((t."b" IS NULL AND t."c" = ANY($2))))"#),
      ("and", #"("a.b".eq.1)"#, #"(t."a.b" = $1)"#), ("or", "(a.not.eq.1)", #"(NOT (t."a" = $1))"#),
      ("or", #"(a".eq.1)"#, #"(t."a""" = $1)"#), ("and", "(a.cs.{1,2},b.eq.3)", #"(t."a" @> $1 AND t."b" = $2)"#),
    ])
    func readsGroups(word: String, text: String, expected: String) throws {
      #expect(sql(try FilterParser.group(word, text)).0 == expected)
    }

    @Test(arguments: [
      "eq", "", "between.1", "in.1,2", "in.(1", "is.1", "in.(1)x", "eq", "not", "not.", #"in.("a)"#, "= 1; drop.x",
    ])
    func refuses(text: String) {
      #expect(throws: RESTError.self) { try FilterParser.filter(column: "c", text) }
    }

    @Test(arguments: ["", "a.eq.1", "(a.eq.1", "(a.eq.1))", "(a)", "(a.eq)", #"("a.eq.1)"#, "()", "(not.a.eq.1)x"])
    func refusesGroups(text: String) {
      #expect(throws: RESTError.self) { try FilterParser.group("or", text) }
    }

    @Test(arguments: ["a->b", "a->>b", "a::text", "other(id)", ""])
    func refusesNamesThatAreMore(name: String) {
      #expect(throws: RESTError.self) { try FilterParser.name(name) }
    }

    @Test func quotesNames() {
      #expect(PostgresStatement.quoted(#"a"; drop table x; --"#) == #""a""; drop table x; --""#)
    }
  }
#endif
