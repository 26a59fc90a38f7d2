import HTTPClient
import HostKit
import SyncServer

/// An HTTP transport that ends in a `SyncServer`: `POST …/rest/v1/rpc/pull` and `push` as PostgREST serves them, without
/// a network. The caller is the `sub` of the bearer token, whose signature is not looked at.
///
/// A request that the real service would refuse for its form is refused here too (Kizuna wire contract §2), so a client
/// that passes its tests sends the right headers.
public final class SyncServerTransport: HTTPTransport {
  public let server: SyncServer
  public var faults: TransportFaults { http.faults }
  private let http: ScriptedHTTP

  public init(_ server: SyncServer) {
    self.server = server
    http = ScriptedHTTP { request in await Self.answer(request, server) }
  }

  /// Every call so far, failed ones included.
  public var calls: [HTTPRequest] { http.calls }

  /// The bodies of the calls of one function so far.
  public func bodies(of function: String) -> [JSONValue] {
    calls.filter { $0.path.hasSuffix("/rest/v1/rpc/" + function) }.map { $0.json ?? .null }
  }

  public func forgetCalls() { http.forgetCalls() }

  public func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    try await http.send(request)
  }

  private static func answer(_ request: HTTPRequest, _ server: SyncServer) async -> HTTPResponse {
    if let refusal = refusal(of: request) { return response(.failure(refusal)) }
    guard let body = request.json else {
      return response(.failure(RPCError("PGRST102", "Empty or invalid json")))
    }
    let caller: Caller
    switch self.caller(of: request) {
    case .success(let verified): caller = verified
    case .failure(let error): return response(.failure(error))
    }
    return response(
      request.path.hasSuffix("/pull")
        ? await server.pull(body, caller: caller) : await server.push(body, caller: caller))
  }

  private static func response(_ answer: RPCAnswer) -> HTTPResponse {
    .json(answer.body, status: answer.status)
  }

  private static func refusal(of request: HTTPRequest) -> RPCError? {
    guard ["/rest/v1/rpc/pull", "/rest/v1/rpc/push"].contains(where: request.path.hasSuffix) else {
      return RPCError("PGRST202", "no function at \(request.path)")
    }
    guard request.method == "POST" else { return RPCError("PGRST117", "method \(request.method)", status: 405) }
    guard request.header("Content-Type")?.hasPrefix("application/json") == true else {
      return RPCError("PGRST102", "the content type is not JSON", status: 415)
    }
    guard request.header("Content-Profile") == "kizunasync" else {
      return RPCError("PGRST106", "The schema must be one of the following: kizunasync")
    }
    if request.header("Accept").map({ $0 != "application/json" && $0 != "*/*" }) ?? false {
      return RPCError("PGRST107", "the answer is JSON only", status: 406)
    }
    if request.header("Prefer") != nil || request.header("Accept-Profile") != nil {
      return RPCError("PGRST100", "Prefer and Accept-Profile are not sent by this protocol")
    }
    return nil
  }

  private static func caller(of request: HTTPRequest) -> Result<Caller, RPCError> {
    guard let authorization = request.header("Authorization") else { return .success(.anonymous) }
    let parts = authorization.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, parts[0].lowercased() == "bearer", let token = UnverifiedToken(String(parts[1])) else {
      return .failure(RPCError("PGRST301", "JWSError (CompactDecodeError Invalid number of parts)"))
    }
    return .success(Caller(subject: token.subject, role: token.role ?? "authenticated"))
  }
}
