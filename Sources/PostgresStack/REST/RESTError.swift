#if Postgres
  import HostKit
  import LocalStack
  import SyncServer

  /// An error as PostgREST reports it.
  struct RESTError: Error, Sendable, Hashable {
    let status: Int
    let code: String
    let message: String
    var details: String?
    var hint: String?

    init(_ status: Int, _ code: String, _ message: String, details: String? = nil, hint: String? = nil) {
      self.status = status
      self.code = code
      self.message = message
      self.details = details
      self.hint = hint
    }

    init(_ error: RPCError) {
      self.init(error.status, error.code, error.message)
    }

    /// - Parameter isAnonymous: the caller showed no token, so that a refusal asks for one.
    init(_ error: PostgresError, isAnonymous: Bool) {
      if error.isConnectionLost {
        let isNew = error.code == "08001"
        // What libpq says of a server names its address, which is no business of clients.
        self.init(
          503, isNew ? "PGRST000" : "PGRST001",
          isNew
            ? "Could not connect with the database."
            : "The connection to the database was lost; the request may be sent again.")
      } else {
        self.init(
          Self.status(of: error, isAnonymous: isAnonymous), error.code, error.message, details: error.detail,
          hint: error.hint)
      }
    }

    func response() -> StackResponse {
      .json(
        [
          "code": .string(code), "message": .string(message), "details": .string(orNull: details),
          "hint": .string(orNull: hint),
        ], status: status, headers: status == 401 ? [StackHeader("www-authenticate", "Bearer")] : [])
    }

    /// PostgREST's table of SQLSTATEs and statuses
    /// (https://docs.postgrest.org/en/stable/references/errors.html#http-status-codes).
    static func status(of error: PostgresError, isAnonymous: Bool) -> Int {
      let code = error.code
      switch code {
      case "23503", "23505": return 409
      case "25006": return 405
      case "21000": return error.message.hasSuffix("requires a WHERE clause") ? 400 : 500
      case "22023": return error.message.hasPrefix("role") && error.message.hasSuffix("does not exist") ? 401 : 400
      case "42883", "42P01": return 404
      case "42P17": return 500
      case "42501": return isAnonymous ? 401 : 403
      case "53400": return 500
      case "57P01": return 503
      case "P0001": return 400
      default: break
      }
      // A function may choose the status itself: RAISE … USING ERRCODE = 'PT402'.
      if code.hasPrefix("PT"), let status = Int(code.dropFirst(2)), (100..<600).contains(status) { return status }
      switch code.prefix(2) {
      case "08", "53": return 503
      case "0L", "0P", "28": return 403
      case "09", "25", "2D", "38", "39", "3B", "40", "54", "55", "57", "58", "F0", "HV", "P0", "XX": return 500
      default: return 400
      }
    }
  }
#endif
