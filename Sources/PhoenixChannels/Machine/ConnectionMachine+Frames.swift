import HostKit

/// Where a received frame belongs.
extension ConnectionMachine {
  mutating func receive(_ frame: PhoenixFrame, _ turn: inout Turn) {
    let matched: Bool
    if frame.topic == PhoenixFrame.Name.phoenix {
      matched = frame.event == PhoenixFrame.Name.reply && heartbeat.answered(ref: frame.ref, at: turn.now)
    } else {
      switch frame.event {
      case PhoenixFrame.Name.reply: matched = reply(frame, &turn)
      case PhoenixFrame.Name.close: matched = ended(frame, "the server closed the channel", &turn)
      case PhoenixFrame.Name.error: matched = ended(frame, "the channel crashed at the server", &turn)
      case PhoenixFrame.Name.system: matched = system(frame, &turn)
      case PhoenixFrame.Name.broadcast:
        matched = broadcast(frame, .broadcast(event: frame.userBroadcast?.event ?? ""), &turn)
      case PhoenixFrame.Name.postgresChanges: matched = broadcast(frame, .change, &turn)
      // Presence, and whatever a later server may add.
      default: matched = index(of: frame) != nil
      }
    }
    if !matched { counters.framesUnmatched += 1 }
  }

  private func index(of frame: PhoenixFrame) -> Int? {
    channels.firstIndex { $0.topic.wireName == frame.topic }
  }

  /// The channel a frame is for, if it does not carry another join's reference. Live broadcasts and everything under
  /// version 1.0.0 carry none.
  private func current(_ frame: PhoenixFrame) -> Int? {
    guard let index = index(of: frame), let currentRef = channels[index].currentRef else { return nil }
    guard frame.joinRef == nil || frame.joinRef == currentRef else { return nil }
    return index
  }

  private mutating func reply(_ frame: PhoenixFrame, _ turn: inout Turn) -> Bool {
    guard let ref = frame.ref else { return false }
    switch serverQueue.reply(ref: ref) {
    case .leave: return true
    case .join(let sentAt):
      heartbeat.joinDone(sentAt: sentAt, at: turn.now, policy.heartbeat.deadline)
      return true
    case .notOurs: break
    }
    guard let index = current(frame), case .joining(ref, let sentAt) = channels[index].phase else { return false }
    joinAnswered(index, sentAt: sentAt, frame, &turn)
    return true
  }

  /// `phx_close` or `phx_error`. Under 1.0.0 the join's reference stands in `ref`.
  private mutating func ended(_ frame: PhoenixFrame, _ text: String, _ turn: inout Turn) -> Bool {
    guard let joinRef = frame.joinRef ?? frame.ref else {
      // Some servers name no join; a channel that is still joining has its own deadline.
      guard let index = index(of: frame), channels[index].isJoined else { return false }
      channelEnded(index, text, &turn)
      return true
    }
    guard let index = index(of: frame), channels[index].currentRef == joinRef else {
      return serverQueue.closed(joinRef: joinRef)
    }
    channelEnded(index, text, &turn)
    return true
  }

  /// A `system` error announces the `phx_close` that follows it, except those of `postgres_changes`.
  private mutating func system(_ frame: PhoenixFrame, _ turn: inout Turn) -> Bool {
    guard let index = current(frame) else { return false }
    let message = frame.json?["message"]?.stringValue ?? ""
    switch (frame.json?["status"]?.stringValue, frame.json?["extension"]?.stringValue) {
    case ("error", "postgres_changes"):
      let report = RefusalTables.subscription(message: message)
      channels[index].lastFailure = report
      turn.note(.warning(channels[index].topic, report))
    case ("error", _): channels[index].notice = RefusalTables.system(message: message)
    case ("ok", _):
      if message == "Replication connection established" { ring([channels[index].topic], .replicationReady, &turn) }
    default: break
    }
    return true
  }

  private mutating func broadcast(_ frame: PhoenixFrame, _ cause: ConnectionRing.Cause, _ turn: inout Turn) -> Bool {
    guard let index = current(frame) else { return false }
    counters.broadcasts += 1
    ring([channels[index].topic], cause, &turn)
    return true
  }
}
