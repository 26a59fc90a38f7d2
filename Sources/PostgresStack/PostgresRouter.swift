#if Postgres
  import HostKit
  import LocalStack

  /// Sends each request to the service that answers it.
  struct PostgresRouter: StackHandler {
    let rest: RESTService
    let auth: AuthService
    let times: NotificationTimes
    let gate: APIKeyGate
    let wallMilliseconds: @Sendable () -> Int64

    func handle(_ request: StackRequest) async -> StackResponse {
      switch (request.method, request.path) {
      case ("GET", "/_localstack/health"): return .json(["ok": true])
      case ("GET", "/_localstack/commits"): return times.response(to: request)
      default: break
      }
      for (prefix, isREST) in [("/rest/v1/", true), ("/auth/v1/", false)] where request.path.hasPrefix(prefix) {
        if let refusal = gate.refusal(of: request, now: wallMilliseconds() / 1000) { return refusal }
        let rest = request.path.dropFirst(prefix.count)
        let path = String(rest.hasSuffix("/") ? rest.dropLast() : rest)
        return isREST ? await self.rest.handle(request, path: "/" + path) : await auth.handle(request, path: path)
      }
      return .json(["message": "no Route matched with those values"], status: 404)
    }
  }
#endif
