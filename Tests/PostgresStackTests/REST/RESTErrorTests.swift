#if Postgres
  import Testing

  @testable import PostgresStack

  @Suite struct RESTErrorTests {
    @Test(arguments: [
      ("42501", false, 403), ("42501", true, 401), ("23505", false, 409), ("23503", false, 409), ("23514", false, 400),
      ("23502", false, 400), ("22023", false, 400), ("22P02", false, 400), ("P0001", false, 400), ("P0002", false, 500),
      ("0A000", false, 400), ("42883", false, 404), ("42P01", false, 404), ("42703", false, 400), ("40001", false, 500),
      ("40P01", false, 500), ("53300", false, 503), ("57014", false, 500), ("25006", false, 405), ("KZP01", false, 400),
      ("PT402", false, 402), ("PTabc", false, 400), ("XX000", false, 500), ("28P01", false, 403),
    ])
    func statusOfAnSQLSTATE(code: String, isAnonymous: Bool, status: Int) {
      #expect(RESTError(PostgresError(code, "m"), isAnonymous: isAnonymous).status == status)
    }

    @Test func aRoleThatDoesNotExistIsNobody() {
      #expect(RESTError(PostgresError("22023", "role \"x\" does not exist"), isAnonymous: false).status == 401)
    }

    @Test(arguments: ["08001", "08006", "57P01"])
    func aLostDatabaseTellsNothingOfItsAddress(code: String) {
      let error = RESTError(PostgresError(code, "connection to server at \"10.0.0.1\" failed"), isAnonymous: false)
      #expect(error.status == 503)
      #expect(!error.message.contains("10.0.0.1"))
    }
  }
#endif
