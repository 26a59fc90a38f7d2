import HostKit
import PhoenixChannels

/// One joined topic of one socket.
struct RealtimeChannel: Equatable {
  /// With the prefix, as on the wire.
  var topic: String
  var room: RealtimeRoom
  /// The `join_ref` the client gave, which may be none.
  var joinRef: String?
  /// The `ref` of the join; stands in for a missing `join_ref` in what the channel itself writes.
  var ref: String?
  var token: AcceptedToken
  var acknowledges: Bool
  var receivesOwn: Bool
  var tokenCheckAt: UInt64
  /// When to say that database messages flow; nil when nobody asked or it was said.
  var readyAt: UInt64?
  /// Whether its token may write, once somebody was asked; nothing is kept of rules that answer at once.
  var mayWrite: Bool?

  func reply(to ref: String?, status: String, _ response: JSONValue) -> PhoenixFrame {
    PhoenixFrame(
      joinRef: joinRef ?? self.ref, ref: ref, topic: topic, event: PhoenixFrame.Name.reply,
      ["status": .string(status), "response": response])
  }

  func system(_ status: String, _ message: String, extension name: String = "system") -> PhoenixFrame {
    PhoenixFrame(
      joinRef: joinRef ?? ref, topic: topic, event: PhoenixFrame.Name.system,
      [
        "extension": .string(name), "status": .string(status), "message": .string(message),
        "channel": .string(room.topic),
      ])
  }

  func closeFrame() -> PhoenixFrame {
    PhoenixFrame(joinRef: joinRef, ref: joinRef, topic: topic, event: PhoenixFrame.Name.close, [:])
  }
}
