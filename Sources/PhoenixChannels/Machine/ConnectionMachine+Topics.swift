import HostKit

/// Topics: who wants them, when they are joined, and what their refusals mean.
extension ConnectionMachine {
  // MARK: Subscribers

  mutating func subscribe(_ topic: ChannelTopic, _ turn: inout Turn) {
    if let index = index(of: topic) {
      channels[index].subscribers += 1
    } else {
      channels.append(Channel(topic))
      connectIfWanted(&turn)
    }
  }

  mutating func unsubscribe(_ topic: ChannelTopic, _ turn: inout Turn) {
    guard let index = index(of: topic) else { return }
    channels[index].subscribers -= 1
    guard channels[index].subscribers <= 0 else { return }
    if channels[index].currentRef != nil { roomMade(&turn) }
    leave(index, &turn)
    timers.cancel(.rejoin(topic), &turn)
    rings.remove(topic)
    channels.remove(at: index)
    turn.note(.left(topic))
  }

  /// Tells the server that the current join is not wanted any more, and forgets it.
  private mutating func leave(_ index: Int, _ turn: inout Turn) {
    guard let id = openTransport, let joinRef = channels[index].currentRef else { return }
    let topic = channels[index].topic
    let leaveRef = nextRef()
    var joinSentAt: UInt64?
    if case .joining(_, let sentAt) = channels[index].phase { joinSentAt = sentAt }
    timers.cancel(.join(topic), &turn)
    serverQueue.leave(
      joinRef: joinRef, leaveRef: leaveRef, joinSentAt: joinSentAt, until: turn.now + policy.join.deadline,
      remembering: policy.join.maximumRemembered)
    channels[index].phase = .idle
    let frame = PhoenixFrame(
      joinRef: joinRef, ref: leaveRef, topic: topic.wireName, event: PhoenixFrame.Name.leave, [:])
    turn.effects.append(.send(id, frame))
  }

  // MARK: Joining

  /// Sends as many joins as may be out at once.
  mutating func sendJoins(_ turn: inout Turn) {
    guard let id = openTransport, credentials.canJoin, joinsHeldUntil == nil else { return }
    var room = joinWindow - channels.count(where: \.isJoining)
    // This is asked after every event.
    guard room > 0 else { return }
    // Whose last join is longest ago goes first: refused and unanswered topics, which come back again and again, must not
    // keep the others out.
    let waiting = channels.indices.filter { channels[$0].phase == .idle }
    for index in waiting.sorted(by: { (channels[$0].joinNumber, $0) < (channels[$1].joinNumber, $1) }) {
      guard room > 0 else { return }
      room -= 1
      sendJoin(index, on: id, &turn)
    }
  }

  private mutating func sendJoin(_ index: Int, on id: TransportID, _ turn: inout Turn) {
    let topic = channels[index].topic
    let ref = nextRef()
    channels[index].phase = .joining(ref: ref, sentAt: turn.now)
    channels[index].notice = nil
    channels[index].tokenSerial = credentials.serial
    counters.joinsSent += 1
    channels[index].joinNumber = counters.joinsSent
    timers.arm(.join(topic), at: turn.now + policy.join.deadline, &turn)
    let frame = PhoenixFrame(
      joinRef: ref, ref: ref, topic: topic.wireName, event: PhoenixFrame.Name.join, joinPayload)
    turn.effects.append(.send(id, frame))
  }

  /// Always with `config`, without which the server falls into a legacy mode, and without null members, which it takes
  /// for badly typed ones (Realtime wire contract §4).
  private var joinPayload: JSONValue {
    var broadcast: [String: JSONValue] = ["ack": false, "self": false]
    if policy.replicationReady { broadcast["replication_ready"] = true }
    var payload: [String: JSONValue] = [
      "config": [
        "broadcast": .object(broadcast), "presence": ["enabled": false], "postgres_changes": [],
        "private": .bool(policy.privateChannels),
      ]
    ]
    if let token = credentials.token { payload["access_token"] = .string(token) }
    return .object(payload)
  }

  mutating func joinAnswered(_ index: Int, sentAt: UInt64, _ frame: PhoenixFrame, _ turn: inout Turn) {
    timers.cancel(.join(channels[index].topic), &turn)
    heartbeat.joinDone(sentAt: sentAt, at: turn.now, policy.heartbeat.deadline)
    if frame.replyStatus == "ok" { return joinAccepted(index, frame, &turn) }
    counters.joinsRefused += 1
    let response = frame.json?["response"]
    // The response of an error may be any JSON value.
    let reason = response?["reason"]?.stringValue ?? response?.stringValue ?? ""
    refused(index, RefusalTables.join(reason: reason), &turn)
  }

  private mutating func joinAccepted(_ index: Int, _ frame: PhoenixFrame, _ turn: inout Turn) {
    guard let ref = channels[index].currentRef else { return }
    counters.joinsAccepted += 1
    channels[index].phase = .joined(ref: ref, since: turn.now)
    channels[index].failedJoins = 0
    channels[index].lastFailure = nil
    joinWindow = policy.join.maximumOutstanding
    announcedClose = nil
    channels[index].tokenSince = turn.now
    turn.note(.joined(channels[index].topic))
    addRing(channels[index].topic, &turn)
    if channels[index].tokenSerial != credentials.serial { pushToken(index, &turn) }
  }

  mutating func joinOverdue(_ topic: ChannelTopic, _ turn: inout Turn) {
    guard let index = index(of: topic), channels[index].isJoining else { return }
    counters.joinsUnanswered += 1
    leave(index, &turn)
    refused(
      index, RefusalTables.ChannelRefusal(report: FailureReport(.transient, "the server did not answer the join")),
      &turn)
  }

  // MARK: Refusals

  /// The channel's join was refused or unanswered, or the server ended the channel.
  private mutating func refused(_ index: Int, _ refusal: RefusalTables.ChannelRefusal, _ turn: inout Turn) {
    let topic = channels[index].topic
    let report = refusal.report
    joinWindow = 1
    channels[index].notice = nil
    channels[index].lastFailure = report
    counters.topicFailures[report.failureClass, default: 0] += 1
    if report.isUnknown { counters.refusalsUnknown += 1 }
    turn.note(.refused(topic, report))
    switch report.failureClass {
    case .auth where credentials.required:
      channels[index].phase = .idle
      credentials.refused(channels[index].tokenSerial)
    case .auth, .denied, .config:
      channels[index].phase = .denied(report)
      let delay = turn.around(policy.slowRetry, share: policy.slowRetrySpread)
      timers.arm(.rejoin(topic), at: turn.now + delay, &turn)
      // The server closes the connection after some of these.
      if refusal.scope == .connection { announcedClose = report }
    case .transient, .limit:
      channels[index].failedJoins += 1
      switch refusal.scope {
      case .topic: backOff(index, report.failureClass, &turn)
      case .connection:
        backOff(index, report.failureClass, &turn)
        announcedClose = report
        holdJoins(for: turn.upperHalf(policy.reconnect.limitDelay), &turn)
      case .room:
        // Each further join would be refused too, and keep the connection deaf while the server thinks about it.
        channels[index].phase = .idle
        holdJoins(for: turn.around(policy.slowRetry, share: policy.slowRetrySpread), &turn)
        joinsAwaitRoom = true
      case .replaceConnection: return drop(report, &turn)
      }
      replaceIfHopeless(index, &turn)
    }
  }

  private mutating func backOff(_ index: Int, _ failureClass: FailureClass, _ turn: inout Turn) {
    let delay =
      failureClass == .limit
      ? policy.join.backoffCap
      : Backoff.delay(
        base: policy.join.backoffBase, factor: policy.join.backoffFactor, cap: policy.join.backoffCap,
        failuresBefore: channels[index].streak)
    channels[index].streak += 1
    let until = turn.now + turn.upperHalf(delay)
    channels[index].phase = .backingOff(until: until)
    timers.arm(.rejoin(channels[index].topic), at: until, &turn)
  }

  /// A person may have mended what denied a topic, and asks to try again.
  mutating func retryDenied(_ turn: inout Turn) {
    let at = turn.now + policy.reconnect.hintSpread
    for channel in channels {
      guard case .denied = channel.phase, let armed = timers.deadline(of: .rejoin(channel.topic)), armed > at else {
        continue
      }
      timers.arm(.rejoin(channel.topic), at: at, &turn)
    }
  }

  /// A channel goes, so another one fits.
  private mutating func roomMade(_ turn: inout Turn) {
    guard joinsAwaitRoom else { return }
    joinsAwaitRoom = false
    joinsHeldUntil = nil
    timers.cancel(.joinHold, &turn)
  }

  /// The limit is not this topic's: any other join would be refused too.
  private mutating func holdJoins(for delay: UInt64, _ turn: inout Turn) {
    let until = turn.now + delay
    joinsHeldUntil = until
    timers.arm(.joinHold, at: until, &turn)
  }

  /// A topic that cannot be joined over and over may be the fault of this connection.
  private mutating func replaceIfHopeless(_ index: Int, _ turn: inout Turn) {
    guard channels[index].failedJoins >= policy.join.failuresBeforeReplacing else { return }
    if let last = lastReplacement, turn.now < last + policy.join.replacementSpacing { return }
    guard openTransport != nil else { return }
    lastReplacement = turn.now
    channels[index].failedJoins = 0
    counters.socketsReplaced += 1
    let report = FailureReport(.transient, "a topic could not be joined \(policy.join.failuresBeforeReplacing) times")
    turn.note(.replaced(report))
    drop(report, &turn)
  }

  /// The server ended a channel that we want. Unlike in a browser this is never final.
  mutating func channelEnded(_ index: Int, _ fallback: String, _ turn: inout Turn) {
    switch channels[index].phase {
    case .joining(_, let sentAt):
      timers.cancel(.join(channels[index].topic), &turn)
      heartbeat.joinDone(sentAt: sentAt, at: turn.now, policy.heartbeat.deadline)
      counters.joinsRefused += 1
    case .joined(_, let since):
      roomMade(&turn)
      if turn.now >= since + policy.reconnect.stabilityWindow { channels[index].streak = 0 }
    case .idle, .backingOff, .denied: return
    }
    let refusal =
      channels[index].notice ?? RefusalTables.ChannelRefusal(report: FailureReport(.transient, fallback))
    refused(index, refusal, &turn)
  }

  // MARK: Rings

  mutating func addRing(_ topic: ChannelTopic, _ turn: inout Turn) {
    rings.add(topic, receivedAt: turn.receivedAt)
    if !timers.isArmed(.ring) { timers.arm(.ring, at: turn.now + policy.join.ringDelay, &turn) }
  }

  /// One ring for all topics once no join is out any more.
  mutating func tidyRings(_ turn: inout Turn) {
    if !rings.isEmpty, !channels.contains(where: \.isJoining) { flushRings(&turn) }
  }

  mutating func flushRings(_ turn: inout Turn) {
    timers.cancel(.ring, &turn)
    guard let ring = rings.take() else { return }
    counters.rings += 1
    turn.effects.append(.ring(ring))
  }

  mutating func ring(_ topics: [ChannelTopic], _ cause: ConnectionRing.Cause, _ turn: inout Turn) {
    guard !topics.isEmpty else { return }
    counters.rings += 1
    turn.effects.append(.ring(ConnectionRing(topics: topics, cause: cause, receivedAt: turn.receivedAt)))
  }
}
