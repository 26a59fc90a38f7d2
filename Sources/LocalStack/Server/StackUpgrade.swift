/// Who decides about WebSocket upgrades and owns the sockets that come of them. All calls are made on the server's loop
/// thread, one at a time.
protocol StackSocketOwner: AnyObject, Sendable {
  /// - Returns: nil when the path is not a WebSocket's; the request then goes to the HTTP handler.
  func upgrade(_ request: StackRequest) -> StackUpgradeVerdict?
  func opened(_ socket: StackWebSocket, as accepted: UpgradeRule.Accepted)
  func received(_ message: WebSocketParser.Message, on socket: StackWebSocket)
  /// Bytes came, whatever they were.
  func bytesArrived(on socket: StackWebSocket)
  func closed(_ socket: StackWebSocket)
}

enum StackUpgradeVerdict: Sendable, Equatable {
  case accept(UpgradeRule.Accepted)
  /// Answer so many nanoseconds from now.
  case refuse(StackResponse, after: UInt64)
  /// Take the bytes and never answer.
  case ignore
}

/// The server's end of one WebSocket. Loop thread only.
protocol StackWebSocket: AnyObject, Sendable {
  var id: UInt64 { get }
  func send(_ frame: WebSocketFrame)
  /// Sends a close frame and ends the connection when the peer has answered it, or two seconds later.
  func close(code: UInt16?, reason: String)
  /// Answers the close frame of the peer and ends the connection.
  func closeReceived(code: UInt16?, reason: String)
  /// Ends the connection without a close frame; `reset` throws away what is queued.
  func drop(reset: Bool)
}
