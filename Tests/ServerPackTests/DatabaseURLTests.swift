import ServerPack
import Testing

@Suite struct DatabaseURLTests {
  @Test(arguments: [
    ("postgresql://", [:]),
    ("postgres://db.example.org", ["PGHOST": "db.example.org"]),
    (
      "postgresql://postgres.ref:p%40ss%3Aword@aws.pooler.example.com:6543/postgres?sslmode=require&connect_timeout=5",
      [
        "PGUSER": "postgres.ref", "PGPASSWORD": "p@ss:word", "PGHOST": "aws.pooler.example.com", "PGPORT": "6543",
        "PGDATABASE": "postgres", "PGSSLMODE": "require", "PGCONNECT_TIMEOUT": "5",
      ]
    ),
    ("postgresql:///app?host=%2Fvar%2Frun%2Fpostgresql", ["PGDATABASE": "app", "PGHOST": "/var/run/postgresql"]),
    ("postgresql://u@[::1]:5433/d", ["PGUSER": "u", "PGHOST": "::1", "PGPORT": "5433", "PGDATABASE": "d"]),
    ("postgresql://a:1,b:2/d", ["PGHOST": "a,b", "PGPORT": "1,2", "PGDATABASE": "d"]),
    ("postgresql://u:a:b@h", ["PGUSER": "u", "PGPASSWORD": "a:b", "PGHOST": "h"]),
  ])
  func becomesVariables(text: String, variables: [String: String]) throws {
    #expect(try DatabaseURL(text).environment == variables)
  }

  @Test(arguments: [
    "", "http://h/d", "host=h password=secret", "postgresql://u:secret@h:0/d", "postgresql://u:secret@h:port/d",
    "postgresql://u:secret@h/d?no_such=secret", "postgresql://u:secret@h/d?sslmode",
  ])
  func refusesWithoutQuotingIt(text: String) {
    #expect {
      try DatabaseURL(text)
    } throws: { error in
      !"\(error)".contains("secret")
    }
  }

  @Test func doesNotDescribeItself() throws {
    #expect(!"\(try DatabaseURL("postgresql://u:secret@h/d"))".contains("secret"))
  }
}
