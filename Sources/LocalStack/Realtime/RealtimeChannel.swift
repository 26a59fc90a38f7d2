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
  /// Both were numbers.
  var hasNumericReferences: Bool
  var token: AcceptedToken
  var acknowledges: Bool
  var receivesOwn: Bool
  var tokenCheckAt: UInt64
  /// When to say that database messages flow; nil when nobody asked or it was said.
  var readyAt: UInt64?
  /// Whether its token may write, once somebody was asked; nothing is kept of rules that answer at once.
  var mayWrite: Bool?

  func reply(to frame: PhoenixFrame, status: String, _ response: JSONValue) -> PhoenixFrame {
    frame.reply(joinRef: joinRef ?? ref, status: status, response)
  }

  func system(_ status: String, _ message: String, extension name: String = "system") -> PhoenixFrame {
    frame(
      joinRef: joinRef ?? ref, ref: nil, PhoenixFrame.Name.system,
      [
        "extension": .string(name), "status": .string(status), "message": .string(message),
        "channel": .string(room.topic),
      ])
  }

  func closeFrame() -> PhoenixFrame {
    frame(joinRef: joinRef, ref: joinRef, PhoenixFrame.Name.close, [:])
  }

  private func frame(joinRef: String?, ref: String?, _ event: String, _ payload: JSONValue) -> PhoenixFrame {
    var frame = PhoenixFrame(joinRef: joinRef, ref: ref, topic: topic, event: event, payload)
    frame.hasNumericReferences = hasNumericReferences
    return frame
  }
}

extension PhoenixFrame {
  /// The server's answer to this frame.
  func reply(joinRef: String?, status: String, _ response: JSONValue) -> PhoenixFrame {
    var reply = PhoenixFrame(
      joinRef: joinRef, ref: ref, topic: topic, event: Name.reply, ["status": .string(status), "response": response])
    reply.hasNumericReferences = hasNumericReferences
    return reply
  }
}
