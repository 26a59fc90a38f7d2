import HostKit

/// What a remote procedure call answers: the function's result, or an error in PostgREST's shape.
public enum RPCAnswer: Sendable, Hashable {
  case success(JSONValue)
  case failure(RPCError)

  public var status: Int {
    switch self {
    case .success: 200
    case .failure(let error): error.status
    }
  }

  /// The response body.
  public var body: JSONValue {
    switch self {
    case .success(let value): value
    case .failure(let error): error.body
    }
  }
}

/// An error as PostgREST reports it: an SQLSTATE or a `PGRST…` code, and a message.
public struct RPCError: Error, Sendable, Hashable, CustomStringConvertible {
  public let code: String
  public let message: String
  public let status: Int

  /// - Parameter status: nil takes PostgREST's mapping of the code.
  public init(_ code: String, _ message: String, status: Int? = nil) {
    self.code = code
    self.message = message
    self.status = status ?? Self.status(of: code)
  }

  public var body: JSONValue {
    ["code": .string(code), "message": .string(message), "details": nil, "hint": nil]
  }

  public var description: String { "\(code): \(message)" }

  /// PostgREST's mapping of SQLSTATEs and of its own codes to HTTP.
  static func status(of code: String) -> Int {
    switch code {
    case "23503", "23505": return 409
    case "42501": return 403
    case "42883", "42P01", "PGRST202", "PGRST205": return 404
    case "PGRST106": return 406
    case "PGRST301", "PGRST302", "PGRST303": return 401
    case "P0001": return 400
    default: break
    }
    switch code.prefix(2) {
    case "28": return 403
    case "53": return 503
    case "08": return 503
    case "25", "40", "54", "55", "57", "58", "XX", "P0": return 500
    default: return 400
    }
  }
}
