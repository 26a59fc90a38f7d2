import HostKit
import PhoenixChannels

extension RealtimeSocket {
  /// What the server needs to decide.
  struct Rules: Sendable {
    var settings = RealtimeSettings()
    var verifier: any TokenVerifier
    var policy = RealtimePolicy.signedIn()
    /// Set while the server is about to restart: joins are refused.
    var isRestarting = false
  }

  struct Instant: Equatable {
    /// On the scale of `HostClock.now`.
    var now: UInt64
    var wallMilliseconds: Int64
  }

  enum Input: Equatable {
    case message(PhoenixMessage)
    case ping([UInt8])
    case closed(code: UInt16?, reason: String)
    case broadcast(RealtimeBroadcast)
    /// A frame that the server starts by itself.
    case frame(PhoenixFrame)
    /// The server ends the socket, with or without a notice to every channel.
    case disconnect(code: UInt16, announced: Bool)
  }

  enum Effect: Equatable {
    case send(PhoenixFrame)
    case pong([UInt8])
    /// Answer the client's close frame with its own code.
    case answerClose(code: UInt16?, reason: String)
    case close(code: UInt16)
    /// End without a close frame.
    case kill
    case entered(RealtimeRoom)
    case left(RealtimeRoom)
    /// To every member of the room but the sender, who is named apart.
    case publish(RealtimeBroadcast, alsoToSender: Bool)
    /// Nothing else happens on this socket until `decided` is called.
    case ask(RealtimeQuestion)
  }
}
