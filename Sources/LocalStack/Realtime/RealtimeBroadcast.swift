import HostKit
import PhoenixChannels

/// A room: public and private channels of one name never meet (Realtime wire contract §3).
package struct RealtimeRoom: Hashable, Sendable {
  /// Without the `realtime:` prefix.
  package var topic: String
  package var isPrivate: Bool

  package init(topic: String, isPrivate: Bool) {
    self.topic = topic
    self.isPrivate = isPrivate
  }
}

/// One message on its way to the members of a room.
struct RealtimeBroadcast: Equatable, Sendable {
  enum Content: Equatable, Sendable {
    /// Relayed to everybody as the text it came as: text pushes and HTTP batches.
    case text(JSONValue)
    /// Binary for receivers of version 2.0.0: binary pushes, single HTTP messages and the database.
    case binary(UserBroadcast)
  }

  var room: RealtimeRoom
  var content: Content

  /// The frame a receiver gets (Realtime wire contract §7.3); nil when this version hears nothing of it.
  func frame(for version: PhoenixVersion) -> PhoenixFrame? {
    let topic = "realtime:" + room.topic
    switch content {
    case .text(let payload): return PhoenixFrame(topic: topic, event: PhoenixFrame.Name.broadcast, payload)
    case .binary(let broadcast):
      if version == .v1, case .bytes = broadcast.content { return nil }
      return PhoenixFrame(topic: topic, event: PhoenixFrame.Name.broadcast, payload: .broadcast(broadcast))
    }
  }

  /// What `realtime.send` makes of a row (Realtime wire contract §7.4).
  static func fromDatabase(
    topic: String, event: String, payload: [String: JSONValue], isPrivate: Bool, id: String
  ) -> RealtimeBroadcast {
    var payload = payload
    if payload["id"] == nil { payload["id"] = .string(id) }
    let broadcast = UserBroadcast(event: event, meta: ["id": .string(id)], content: .json(.object(payload)))
    return RealtimeBroadcast(room: RealtimeRoom(topic: topic, isPrivate: isPrivate), content: .binary(broadcast))
  }
}
