import HostKit
import SyncServer

/// `POST /rest/v1/rpc/pull` and `push` as PostgREST serves them (Kizuna wire contract §2).
struct RPCService: Sendable {
  static let schema = "kizunasync"

  let server: SyncServer
  let tokens: StackTokens
  let wallMilliseconds: @Sendable () -> Int64

  /// Answers a request for a function. Reading, deciding and writing happen on the server's thread, so that a request
  /// changes threads once each way.
  func handle(_ request: StackRequest, function: String) async -> StackResponse {
    await server.serve(request, function, self)
  }

  /// The answer, or the error that refuses the request before the function is called.
  func caller(of request: StackRequest, function: String) throws(RPCError) -> Caller {
    guard let profile = request.header("content-profile"), profile == Self.schema else {
      throw RPCError("PGRST106", "The schema must be one of the following: \(Self.schema)")
    }
    guard function == "pull" || function == "push" else {
      throw RPCError(
        "PGRST202", "Could not find the function \(Self.schema).\(function) in the schema cache")
    }
    guard request.method == "POST" else {
      throw RPCError("PGRST101", "Cannot use the \(request.method) method on RPC", status: 405)
    }
    let type = request.header("content-type")?.prefix { $0 != ";" } ?? "application/json"
    guard type.lowercased() == "application/json" else {
      throw RPCError("PGRST102", "Content-Type not acceptable: \(type)", status: 415)
    }
    return try verifiedCaller(request)
  }

  private func verifiedCaller(_ request: StackRequest) throws(RPCError) -> Caller {
    guard let claims = try tokens.claims(of: request, now: wallMilliseconds() / 1000) else { return .anonymous }
    return Caller(subject: claims["sub"]?.stringValue, role: claims["role"]?.stringValue ?? "anon")
  }

  static func response(_ answer: RPCAnswer) -> StackResponse {
    var headers: [StackHeader] = []
    if case .failure(let error) = answer, error.status == 401 {
      headers.append(StackHeader("www-authenticate", "Bearer"))
    }
    return .json(answer.body, status: answer.status, headers: headers)
  }
}

extension SyncServer {
  /// One request from bytes to bytes, on the server's thread.
  fileprivate func serve(_ request: StackRequest, _ function: String, _ service: RPCService) -> StackResponse {
    do throws(RPCError) {
      let caller = try service.caller(of: request, function: function)
      guard let body = try? JSONValue(parsing: request.body) else {
        throw RPCError("PGRST102", "Empty or invalid json")
      }
      return RPCService.response(
        function == "pull" ? pull(body, caller: caller) : push(body, caller: caller))
    } catch {
      return RPCService.response(.failure(error))
    }
  }
}

extension StackTokens {
  /// The claims of a request's bearer token, refused as PostgREST does; nil for a request without one.
  ///
  /// - Parameter now: seconds since 1970.
  package func claims(of request: StackRequest, now: Int64) throws(RPCError) -> [String: JSONValue]? {
    guard request.header("authorization") != nil else { return nil }
    guard let bearer = request.bearerToken else {
      throw RPCError("PGRST301", "The Authorization header is not a bearer token")
    }
    do throws(StackTokens.Refusal) {
      return try verify(bearer, now: now)
    } catch {
      switch error {
      case .expired: throw RPCError("PGRST301", "JWT expired")
      case .badSignature: throw RPCError("PGRST301", "JWSError JWSInvalidSignature")
      case .malformed: throw RPCError("PGRST301", "JWSError (CompactDecodeError Invalid number of parts)")
      case .badClaims: throw RPCError("PGRST301", "JWT claims could not be validated")
      }
    }
  }
}
