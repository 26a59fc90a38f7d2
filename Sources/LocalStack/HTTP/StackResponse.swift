import HostKit

/// The answer to a `StackRequest`. The server adds `content-length`, `date` and what keeps the connection alive.
public struct StackResponse: Sendable, Hashable {
  public var status: Int
  public var headers: [StackHeader]
  public var body: [UInt8]

  public init(status: Int, headers: [StackHeader] = [], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// A JSON answer with the content type PostgREST and Realtime use.
  public static func json(_ value: JSONValue, status: Int = 200, headers: [StackHeader] = []) -> StackResponse {
    StackResponse(
      status: status, headers: [StackHeader("content-type", "application/json; charset=utf-8")] + headers,
      body: JSONWriter.data(value))
  }
}

/// What the server asks for every request that is not a WebSocket upgrade.
public protocol StackHandler: Sendable {
  /// Answers one request. Requests of one connection are asked one after another, of several side by side.
  func handle(_ request: StackRequest) async -> StackResponse
}
