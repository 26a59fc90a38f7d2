import HostKit
import PhoenixChannels

/// One client socket of the Realtime server as a value: what comes in and time that passes, what goes out.
///
/// The server handles a socket as one queue. A join is done inside it, and while it lasts everything else waits behind
/// it: frames, pings, broadcasts for other channels (Realtime wire contract §4).
struct RealtimeSocket {
  let version: PhoenixVersion
  private let serializer: PhoenixSerializer
  private let connectToken: AcceptedToken
  var rules: Rules
  private(set) var channels: [String: RealtimeChannel] = [:]
  private var inbox: [Input] = []
  private var join: PendingJoin?
  /// A frame that waits for the policy, and the frame's question.
  private var asked: (question: RealtimeQuestion, frame: PhoenixFrame, bytes: Int)?
  /// The policy's answer, while the frame that asked is handled.
  private var answer: (question: RealtimeQuestion, decision: RealtimeDecision)?
  private var effects: [Effect] = []
  private var isEnded = false
  private var hasTriedToJoin = false
  /// Joins of topics that were joined already.
  private(set) var repeatedJoins = 0
  private let openedAt: UInt64
  private var lastBytesAt: UInt64

  /// A join that is being done; the socket does nothing else until `at`.
  struct PendingJoin: Equatable {
    var at: UInt64
    var frame: PhoenixFrame
    var replaced: RealtimeChannel?
    var outcome: JoinRule.Outcome
  }

  init(version: PhoenixVersion, token: AcceptedToken, rules: Rules, at instant: Instant) {
    self.version = version
    serializer = PhoenixSerializer(version, side: .server)
    connectToken = token
    self.rules = rules
    openedAt = instant.now
    lastBytesAt = instant.now
  }

  // MARK: In

  /// Any bytes of the client, whole messages or not, keep the socket from counting as idle.
  mutating func bytesArrived(at instant: Instant) {
    lastBytesAt = instant.now
  }

  mutating func receive(_ input: Input, at instant: Instant) -> [Effect] {
    guard !isEnded else { return [] }
    inbox.append(input)
    run(instant)
    return takeEffects()
  }

  /// The policy has answered.
  mutating func decided(
    _ question: RealtimeQuestion, _ decision: RealtimeDecision, at instant: Instant
  ) -> [Effect] {
    guard !isEnded, let asked, asked.question == question else { return [] }
    self.asked = nil
    answer = (question, decision)
    handle(asked.frame, bytes: asked.bytes, instant)
    answer = nil
    run(instant)
    return takeEffects()
  }

  /// Does what is due.
  mutating func advance(to instant: Instant) -> [Effect] {
    guard !isEnded else { return [] }
    run(instant)
    for topic in channels.keys.sorted() { advance(topic, instant) }
    if !isBusy, !isEnded { sweep(instant) }
    return takeEffects()
  }

  /// When `advance` has something to do at the earliest.
  var nextDeadline: UInt64? {
    guard !isEnded else { return nil }
    var deadlines = channels.values.flatMap { [$0.tokenCheckAt] + ($0.readyAt.map { [$0] } ?? []) }
    if let join { deadlines.append(join.at) }
    if !isBusy { deadlines.append(min(idleDeadline, sweepDeadline)) }
    return deadlines.min()
  }

  private mutating func takeEffects() -> [Effect] {
    defer { effects = [] }
    return effects
  }

  /// The queue of the socket, as far as it can go now.
  private mutating func run(_ instant: Instant) {
    while !isEnded, asked == nil {
      if let join {
        guard join.at <= instant.now else { return }
        self.join = nil
        complete(join, instant)
        continue
      }
      guard !inbox.isEmpty else { return }
      handle(inbox.removeFirst(), instant)
    }
  }

  private mutating func handle(_ input: Input, _ instant: Instant) {
    switch input {
    case .message(let message):
      // What cannot be read is dropped without an answer, and the socket stays (Realtime wire contract §2.3).
      guard let frame = try? serializer.decode(message) else { return }
      handle(frame, bytes: message.byteCount, instant)
    case .ping(let payload): effects.append(.pong(payload))
    case .closed(let code, let reason):
      end()
      effects.append(.answerClose(code: code, reason: reason))
    case .broadcast(let broadcast):
      guard let channel = channels["realtime:" + broadcast.room.topic], channel.room == broadcast.room,
        let frame = broadcast.frame(for: version)
      else { return }
      effects.append(.send(frame))
    case .frame(let frame): effects.append(.send(frame))
    case .disconnect(let code, let announced):
      if announced { announceDisconnect() }
      end()
      effects.append(.close(code: code))
    }
  }

  private mutating func announceDisconnect() {
    for topic in channels.keys.sorted() {
      let payload: JSONValue = [
        "extension": "system", "status": "ok", "message": "Server requested disconnect",
      ]
      effects.append(.send(PhoenixFrame(topic: topic, event: PhoenixFrame.Name.system, payload)))
    }
  }

  private mutating func end() {
    isEnded = true
    for channel in channels.values { effects.append(.left(channel.room)) }
    channels = [:]
  }

  /// A join is going on, or the policy is asked.
  private var isBusy: Bool { join != nil || asked != nil }

  /// Puts a frame off until its question is answered.
  private mutating func ask(_ question: RealtimeQuestion, _ frame: PhoenixFrame, bytes: Int) {
    asked = (question, frame, bytes)
    effects.append(.ask(question))
  }

  private func decision(_ question: RealtimeQuestion) -> RealtimeDecision? {
    if let answer, answer.question == question { return answer.decision }
    return rules.policy.decision(question)
  }

  /// What the server starts by itself takes its place in the queue behind a join that is going on.
  private mutating func start(_ frame: PhoenixFrame) {
    if !isBusy { effects.append(.send(frame)) } else { inbox.append(.frame(frame)) }
  }

  // MARK: Frames

  private mutating func handle(_ frame: PhoenixFrame, bytes: Int, _ instant: Instant) {
    if frame.topic == PhoenixFrame.Name.phoenix {
      guard frame.event == PhoenixFrame.Name.heartbeat else { return unmatched(frame) }
      return effects.append(.send(frame.reply(joinRef: nil, status: "ok", [:])))
    }
    if frame.event == PhoenixFrame.Name.join {
      guard frame.topic.hasPrefix("realtime:") else { return unmatched(frame) }
      return beginJoin(frame, bytes: bytes, instant)
    }
    guard let channel = channels[frame.topic] else {
      guard frame.event == PhoenixFrame.Name.leave else { return unmatched(frame) }
      return effects.append(.send(frame.reply(joinRef: frame.joinRef, status: "ok", [:])))
    }
    switch frame.event {
    case PhoenixFrame.Name.leave:
      guard frame.joinRef == channel.joinRef else { return }
      effects.append(.send(channel.reply(to: frame, status: "ok", [:])))
      remove(channel)
    case PhoenixFrame.Name.accessToken: replaceToken(of: channel, frame, bytes: bytes, instant)
    case PhoenixFrame.Name.broadcast: publish(frame, from: channel, bytes: bytes)
    default: break
    }
  }

  private mutating func unmatched(_ frame: PhoenixFrame) {
    effects.append(.send(frame.reply(joinRef: nil, status: "error", ["reason": "unmatched topic"])))
  }

  private mutating func remove(_ channel: RealtimeChannel) {
    channels[channel.topic] = nil
    effects.append(.left(channel.room))
    start(channel.closeFrame())
  }

  private mutating func publish(_ frame: PhoenixFrame, from channel: RealtimeChannel, bytes: Int) {
    let content: RealtimeBroadcast.Content
    switch frame.payload {
    case .json(let payload):
      guard payload.objectValue != nil else { return }
      content = .text(payload)
    case .broadcast(let broadcast): content = .binary(broadcast)
    case .bytes, .reply: return
    }
    // Without permission a push vanishes, acknowledged or not (Realtime wire contract §7.2).
    if channel.room.isPrivate {
      let question = RealtimeQuestion(.write, topic: channel.room.topic, claims: channel.token.claims)
      guard let mayWrite = channel.mayWrite ?? decision(question).map({ $0 == .allowed }) else {
        return ask(question, frame, bytes: bytes)
      }
      // The server asks once for a token.
      if answer?.decision == .allowed || answer?.decision == .denied { channels[channel.topic]?.mayWrite = mayWrite }
      guard mayWrite else { return }
    }
    guard bytes <= rules.settings.maximumPayloadBytes else {
      if channel.acknowledges {
        effects.append(.send(channel.reply(to: frame, status: "error", "payload_size_exceeded")))
      }
      return
    }
    effects.append(
      .publish(RealtimeBroadcast(room: channel.room, content: content), alsoToSender: channel.receivesOwn))
    if channel.acknowledges { effects.append(.send(channel.reply(to: frame, status: "ok", [:]))) }
  }

  // MARK: Joining

  private mutating func beginJoin(_ frame: PhoenixFrame, bytes: Int, _ instant: Instant) {
    hasTriedToJoin = true
    let others = channels.count - (channels[frame.topic] == nil ? 0 : 1)
    let rule = JoinRule(rules: rules, connectToken: connectToken, joinedChannels: others, decide: decision)
    let outcome = rule.outcome(of: frame, at: instant)
    if case .asks(let question) = outcome { return ask(question, frame, bytes: bytes) }
    let replaced = channels.removeValue(forKey: frame.topic)
    if let replaced {
      repeatedJoins += 1
      effects.append(.left(replaced.room))
    }
    let delay =
      switch outcome {
      case .accepted, .asks: rules.settings.joinDelay
      case .refused: rules.settings.channelErrorBackoff
      }
    join = PendingJoin(at: instant.now + delay, frame: frame, replaced: replaced, outcome: outcome)
  }

  private mutating func complete(_ join: PendingJoin, _ instant: Instant) {
    switch join.outcome {
    case .asks: break
    case .refused(let reason):
      effects.append(
        .send(join.frame.reply(joinRef: join.frame.joinRef, status: "error", ["reason": .string(reason)])))
      if let replaced = join.replaced { effects.append(.send(replaced.closeFrame())) }
    case .accepted(var channel, let postgresChanges, let presence):
      effects.append(
        .send(
          join.frame.reply(
            joinRef: join.frame.joinRef, status: "ok", ["postgres_changes": .array(postgresChanges)])))
      if let replaced = join.replaced { effects.append(.send(replaced.closeFrame())) }
      effects.append(.entered(channel.room))
      if presence {
        effects.append(
          .send(
            PhoenixFrame(
              joinRef: channel.joinRef ?? channel.ref, topic: channel.topic, event: "presence_state", [:])))
      }
      if !postgresChanges.isEmpty {
        effects.append(
          .send(
            channel.system("error", PostgresChanges.unavailable(postgresChanges), extension: "postgres_changes")))
      }
      if let ready = channel.readyAt { channel.readyAt = max(ready, instant.now) }
      channels[channel.topic] = channel
      advance(channel.topic, instant)
    }
  }

  // MARK: Tokens and time

  private mutating func replaceToken(
    of channel: RealtimeChannel, _ frame: PhoenixFrame, bytes: Int, _ instant: Instant
  ) {
    guard let text = frame.json?["access_token"]?.stringValue, !text.hasPrefix("sb_"), text != channel.token.text
    else { return }
    do throws(TokenRefusal) {
      let token = try AcceptedToken.check(text, with: rules.verifier, wallMilliseconds: instant.wallMilliseconds)
      if channel.room.isPrivate {
        let topic = channel.room.topic
        let question = RealtimeQuestion(.read, topic: topic, claims: token.claims)
        switch decision(question) {
        case nil: return ask(question, frame, bytes: bytes)
        case .allowed: break
        case .denied:
          return fail(channel, "You no longer have permission to read from this Channel topic: \(topic)")
        case .unavailable: return fail(channel, "Realtime was unable to connect to the project database")
        }
      }
      let checkAt = JoinRule.tokenCheck(token, rules.settings, instant)
      channels[channel.topic]?.token = token
      channels[channel.topic]?.mayWrite = nil
      channels[channel.topic]?.tokenCheckAt = checkAt
    } catch {
      fail(channel, error.systemMessage)
    }
  }

  private mutating func fail(_ channel: RealtimeChannel, _ message: String) {
    start(channel.system("error", message))
    remove(channel)
  }

  private mutating func advance(_ topic: String, _ instant: Instant) {
    guard let channel = channels[topic] else { return }
    if let ready = channel.readyAt, ready <= instant.now {
      channels[topic]?.readyAt = nil
      start(channel.system("ok", "Replication connection established"))
    }
    guard channel.tokenCheckAt <= instant.now else { return }
    if let refusal = channel.token.expiry(wallMilliseconds: instant.wallMilliseconds) {
      fail(channel, refusal.systemMessage)
    } else {
      // A calendar that was set back must not make this spin.
      let checkAt = max(JoinRule.tokenCheck(channel.token, rules.settings, instant), instant.now + 1_000_000)
      channels[topic]?.tokenCheckAt = checkAt
    }
  }

  /// The first check at which the client was silent for the whole timeout.
  private var idleDeadline: UInt64 {
    let interval = max(1, rules.settings.idleCheckInterval)
    let silentFor = lastBytesAt - openedAt + rules.settings.idleTimeout
    return openedAt + (silentFor + interval - 1) / interval * interval
  }

  private var sweepDeadline: UInt64 {
    guard hasTriedToJoin, channels.isEmpty else { return .max }
    let interval = max(1, rules.settings.emptySocketSweep)
    return openedAt + ((lastBytesAt - openedAt) / interval + 1) * interval
  }

  private mutating func sweep(_ instant: Instant) {
    if sweepDeadline <= instant.now {
      end()
      effects.append(.kill)
    } else if idleDeadline <= instant.now {
      end()
      effects.append(.close(code: 1000))
    }
  }
}
