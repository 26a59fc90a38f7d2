import HostKit
import SupabaseRealtime

/// A server, the Realtime hub on its loop, and the handler behind both: broadcasts by HTTP first, then everything else.
package struct StackAssembly: Sendable {
  let server: StackServer
  package let hub: RealtimeHub
  /// `http://host:port` or `https://host:port`, of an address that clients on this machine can use.
  package var url: String {
    let address =
      switch server.host {
      case "0.0.0.0": "127.0.0.1:\(server.port)"
      case "::": "[::1]:\(server.port)"
      default: server.address
      }
    return "\(server.isSecure ? "https" : "http")://\(address)"
  }

  /// The same for other modules, which do not see the server's own options.
  package static func start(
    _ options: LocalStack.Options, secret: String, policy: RealtimePolicy,
    handler: (RealtimeHub) async -> any StackHandler
  ) async throws(StackServerError) -> StackAssembly {
    var rules = RealtimeSocket.Rules(verifier: StackTokenVerifier(secret: secret))
    rules.settings = options.realtime
    rules.policy = policy
    var server = StackServer.Options()
    server.host = options.host
    server.port = options.port
    server.tls = options.tls
    server.clock = options.clock
    return try await start(server, rules: rules, log: options.log, handler: handler)
  }

  /// - Parameters:
  ///   - handler: answers what is not Realtime's; given the hub, because the database behind it rings.
  ///   - log: one line an event; nothing of a request but its method and status.
  static func start(
    _ options: StackServer.Options, rules: RealtimeSocket.Rules, log: HostLog = .none,
    handler: (RealtimeHub) async -> any StackHandler
  ) async throws(StackServerError) -> StackAssembly {
    let loop = StackServer.makeLoop(isSecure: options.tls != nil)
    let hub = RealtimeHub(loop: loop, rules: rules, clock: options.clock, log: log)
    let handler = StackRoutes(hub: hub, broadcasts: HTTPBroadcast(hub: hub), others: await handler(hub))
    let server = try await StackServer.start(options, loop: loop, handler: handler, sockets: hub)
    return StackAssembly(server: server, hub: hub)
  }

  package func stop() async {
    await server.stop()
  }
}

private struct StackRoutes: StackHandler {
  let hub: RealtimeHub
  let broadcasts: HTTPBroadcast
  let others: any StackHandler

  func handle(_ request: StackRequest) async -> StackResponse {
    if let response = await broadcasts.answer(request) { return response }
    if request.path == "/_localstack/realtime", request.method == "GET" { return .json(await hub.counts.json) }
    if UpgradeRule.paths.contains(request.path) {
      // Recorded of a real server.
      return StackResponse(
        status: 400, headers: [StackHeader("content-type", "text/plain")],
        body: Array("'connection' header must contain 'upgrade'".utf8))
    }
    return await others.handle(request)
  }
}
