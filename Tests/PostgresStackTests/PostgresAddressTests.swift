#if Postgres
  import Testing

  @testable import PostgresStack

  @Suite struct PostgresAddressTests {
    @Test(arguments: [
      "", "mysql://me:s3cret@localhost/db", "host=localhost password=s3cret", "postgresql://me:s3cret@[::1/db",
      "postgresql://me:s3cret@localhost/db?nonsense=s3cret", "postgresql://me:s3cret@localhost/d\nb",
    ])
    func whatCannotBeReadIsNotShown(text: String) {
      #expect(throws: PostgresError.self) { try PostgresAddress(text) }
      do { _ = try PostgresAddress(text) } catch { #expect(!"\(error)".contains("s3cret")) }
    }

    @Test func thePasswordNeverShows() throws {
      let address = try PostgresAddress("postgresql://me:s3%63ret@localhost/db")
      var dumped = ""
      dump(address, to: &dumped)
      #expect(!dumped.contains("cret"))
      #expect(!"\(address)".contains("cret"))
      #expect(address.reason("no such\n\tpassword s3cret, s3cret") == "no such password …, …")
    }
  }
#endif
