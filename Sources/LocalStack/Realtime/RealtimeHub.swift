import HostKit
import PhoenixChannels
import SupabaseRealtime

/// The Realtime server: all sockets, who is in which room, and the faults that tests ask for.
///
/// It runs on the server's loop thread, so that a broadcast reaches every socket without changing threads.
package actor RealtimeHub {
  private struct Member {
    let socket: any StackWebSocket
    let serializer: PhoenixSerializer
    var state: RealtimeSocket
    var timer: (any HostTimer)?
    var armedFor: UInt64?
  }

  /// What tests may break.
  package struct Faults: Sendable {
    /// Answers every upgrade; nil lets the rules decide.
    var upgrade: StackUpgradeVerdict?
    /// Nothing is read any more and nothing is sent, pongs and close frames included: a half-open connection.
    package var isSilent = false
    /// Messages of the database are lost, as while a server has no replication connection.
    package var losesDatabaseMessages = false
  }

  package nonisolated let loop: LwsLoop
  private let clock: any HostClock
  private let log: HostLog
  private var rules: RealtimeSocket.Rules
  private var members: [UInt64: Member] = [:]
  private var rooms: [RealtimeRoom: [UInt64]] = [:]
  private var faults = Faults()
  private var acceptedSockets = 0
  private var acceptedJoins: [String: Int] = [:]
  private var repeatedJoins = 0
  private var watchers: [UInt64: (condition: @Sendable (RealtimeCounts) -> Bool, CheckedContinuation<Bool, Never>)] =
    [:]
  /// What was lost while the server was silent.
  private(set) var swallowedMessages = 0

  init(loop: LwsLoop, rules: RealtimeSocket.Rules, clock: any HostClock, log: HostLog) {
    self.loop = loop
    self.rules = rules
    self.clock = clock
    self.log = log
  }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  private var instant: RealtimeSocket.Instant {
    RealtimeSocket.Instant(now: clock.now, wallMilliseconds: clock.wallMilliseconds)
  }

  // MARK: Publishing

  /// - Returns: to how many sockets it went.
  @discardableResult
  func publish(_ broadcast: RealtimeBroadcast) -> Int {
    publish(broadcast, except: nil)
  }

  /// What a trigger's `realtime.send` does once its transaction is committed (Realtime wire contract §7.4).
  @discardableResult
  package func sendFromDatabase(
    topic: String, event: String, payload: [String: JSONValue], isPrivate: Bool = true, id: String = UUIDText.random()
  ) -> Int {
    if faults.losesDatabaseMessages { return 0 }
    return publish(.fromDatabase(topic: topic, event: event, payload: payload, isPrivate: isPrivate, id: id))
  }

  /// What `realtime.send_binary` does.
  @discardableResult
  func sendFromDatabase(topic: String, event: String, bytes: [UInt8], isPrivate: Bool) -> Int {
    if faults.losesDatabaseMessages { return 0 }
    let broadcast = UserBroadcast(
      event: event, meta: ["id": .string(UUIDText.random())], content: .bytes(bytes))
    return publish(
      RealtimeBroadcast(room: RealtimeRoom(topic: topic, isPrivate: isPrivate), content: .binary(broadcast)))
  }

  private func publish(_ broadcast: RealtimeBroadcast, except sender: UInt64?) -> Int {
    let receivers = rooms[broadcast.room] ?? []
    for id in receivers where id != sender { feed(.broadcast(broadcast), to: id) }
    return receivers.count
  }

  // MARK: Sockets

  private func verdict(_ request: StackRequest) -> StackUpgradeVerdict? {
    guard UpgradeRule.paths.contains(request.path) else { return nil }
    if let fault = faults.upgrade { return fault }
    let rule = UpgradeRule(settings: rules.settings, verifier: rules.verifier)
    let verdict = rule.verdict(request, openSockets: members.count, wallMilliseconds: clock.wallMilliseconds)
    switch verdict {
    case .accepted(let accepted): return .accept(accepted)
    case .refused(let response, let delay):
      log.info("realtime.refused", ["status": .int(response.status)])
      return .refuse(response, after: delay)
    }
  }

  private func add(_ socket: any StackWebSocket, _ accepted: UpgradeRule.Accepted) {
    acceptedSockets += 1
    let state = RealtimeSocket(version: accepted.version, token: accepted.token, rules: rules, at: instant)
    members[socket.id] = Member(
      socket: socket, serializer: PhoenixSerializer(accepted.version, side: .server), state: state)
    arm(socket.id)
    tellWatchers()
    log.info("realtime.opened", ["vsn": .string(accepted.version.rawValue), "sockets": .int(members.count)])
  }

  private func remove(_ id: UInt64) {
    guard let member = members.removeValue(forKey: id) else { return }
    member.timer?.cancel()
    for channel in member.state.channels.values { leave(channel.room, id) }
    tellWatchers()
    log.info("realtime.ended", ["sockets": .int(members.count)])
  }

  private func input(_ message: WebSocketParser.Message) -> RealtimeSocket.Input? {
    switch message {
    case .text(let bytes): .message(.text(String(decoding: bytes, as: UTF8.self)))
    case .binary(let bytes): .message(.binary(bytes))
    case .ping(let payload): .ping(payload)
    case .pong: nil
    case .close(let code, let reason): .closed(code: code, reason: reason)
    }
  }

  private func feed(_ input: RealtimeSocket.Input, to id: UInt64) {
    if faults.isSilent {
      swallowedMessages += 1
      return
    }
    guard var member = members.removeValue(forKey: id) else { return }
    // Taken out while it changes, so that its queue is not copied.
    let repeated = member.state.repeatedJoins
    let effects = member.state.receive(input, at: instant)
    repeatedJoins += member.state.repeatedJoins - repeated
    members[id] = member
    perform(effects, for: id)
  }

  private func perform(_ effects: [RealtimeSocket.Effect], for id: UInt64) {
    defer { tellWatchers() }
    for effect in effects {
      guard let member = members[id] else { return }
      switch effect {
      case .send(let frame): send(frame, to: member)
      case .pong(let payload): member.socket.send(WebSocketFrame(opcode: .pong, payload: payload))
      case .answerClose(let code, let reason): member.socket.closeReceived(code: code, reason: reason)
      case .close(let code): member.socket.close(code: code, reason: "")
      case .kill: member.socket.drop(reset: false)
      case .entered(let room):
        acceptedJoins[room.topic, default: 0] += 1
        rooms[room, default: []].append(id)
      case .left(let room): leave(room, id)
      case .publish(let broadcast, let alsoToSender): _ = publish(broadcast, except: alsoToSender ? nil : id)
      case .ask(let question): ask(question, for: id)
      }
    }
    arm(id)
  }

  private func ask(_ question: RealtimeQuestion, for id: UInt64) {
    guard let ask = rules.policy.ask else { return decided(question, .denied, for: id) }
    Task {
      let decision = await ask(question)
      decided(question, decision, for: id)
    }
  }

  private func decided(_ question: RealtimeQuestion, _ decision: RealtimeDecision, for id: UInt64) {
    guard var member = members.removeValue(forKey: id) else { return }
    let repeated = member.state.repeatedJoins
    let effects = member.state.decided(question, decision, at: instant)
    repeatedJoins += member.state.repeatedJoins - repeated
    members[id] = member
    perform(effects, for: id)
  }

  private func send(_ frame: PhoenixFrame, to member: Member) {
    guard !faults.isSilent, let message = try? member.serializer.encode(frame) else { return }
    switch message {
    case .text(let text): member.socket.send(WebSocketFrame(opcode: .text, payload: Array(text.utf8)))
    case .binary(let bytes): member.socket.send(WebSocketFrame(opcode: .binary, payload: bytes))
    }
  }

  private func leave(_ room: RealtimeRoom, _ id: UInt64) {
    rooms[room]?.removeAll { $0 == id }
    if rooms[room]?.isEmpty == true { rooms[room] = nil }
  }

  // MARK: Time

  /// Arms the member's timer when something is due before it; a deadline that moved away is noticed when it fires.
  private func arm(_ id: UInt64) {
    guard let member = members[id], let deadline = member.state.nextDeadline,
      member.armedFor.map({ deadline < $0 }) ?? true
    else { return }
    member.timer?.cancel()
    members[id]?.armedFor = deadline
    members[id]?.timer = clock.schedule(at: deadline) { [weak self, loop] in
      guard let hub = self else { return }
      loop.run { hub.assumeIsolated { $0.timerFired(id) } }
    }
  }

  private func timerFired(_ id: UInt64) {
    guard var member = members.removeValue(forKey: id) else { return }
    member.timer = nil
    member.armedFor = nil
    let repeated = member.state.repeatedJoins
    let effects = faults.isSilent ? [] : member.state.advance(to: instant)
    repeatedJoins += member.state.repeatedJoins - repeated
    members[id] = member
    if faults.isSilent { return }
    perform(effects, for: id)
  }

  // MARK: For tests and the stack

  package var socketCount: Int { members.count }
  /// Sockets accepted since the start.
  var totalSockets: Int { acceptedSockets }

  /// Returns true once the condition holds, false when the task is cancelled or the server ends before.
  package func wait(_ id: UInt64, until condition: @escaping @Sendable (RealtimeCounts) -> Bool) async -> Bool {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if Task.isCancelled { return continuation.resume(returning: false) }
        watchers[id] = (condition, continuation)
        tellWatchers()
      }
    } onCancel: {
      loop.run { self.assumeIsolated { $0.watchers.removeValue(forKey: id)?.1.resume(returning: false) } }
    }
  }

  private func tellWatchers() {
    guard !watchers.isEmpty else { return }
    let counts = counts
    for (id, watcher) in watchers where watcher.condition(counts) {
      watchers[id] = nil
      watcher.1.resume(returning: true)
    }
  }

  /// The server ends; nothing is counted any more.
  package func endWatching() {
    for watcher in watchers.values { watcher.1.resume(returning: false) }
    watchers = [:]
  }

  package var counts: RealtimeCounts {
    var counts = RealtimeCounts(
      openSockets: members.count, acceptedSockets: acceptedSockets, repeatedJoins: repeatedJoins,
      topics: acceptedJoins.mapValues { RealtimeCounts.Topic(members: 0, acceptedJoins: $0) })
    for (room, ids) in rooms { counts.topics[room.topic]?.members += ids.count }
    return counts
  }

  /// Members of a room.
  package func memberCount(of room: RealtimeRoom) -> Int { rooms[room]?.count ?? 0 }

  package func setFaults(_ change: @Sendable (inout Faults) -> Void) {
    let wasSilent = faults.isSilent
    change(&faults)
    guard wasSilent, !faults.isSilent else { return }
    for id in members.keys.sorted() { timerFired(id) }
  }

  func setRules(_ change: @Sendable (inout RealtimeSocket.Rules) -> Void) {
    change(&rules)
    for id in members.keys.sorted() {
      members[id]?.state.rules = rules
      arm(id)
    }
  }

  /// Ends every socket with a close frame, after a notice to every channel where that is wanted. Joins are refused while
  /// `isRestarting` is set.
  func disconnectAll(code: UInt16, announced: Bool) {
    for id in members.keys.sorted() { feed(.disconnect(code: code, announced: announced), to: id) }
  }

  /// Cuts every connection without a close frame.
  package func dropAll(reset: Bool) {
    for id in members.keys.sorted() { members[id]?.socket.drop(reset: reset) }
  }

  /// The claims of a token that the HTTP interface got; nil when it is not good.
  func claims(of token: String) -> JSONValue? {
    let accepted = try? AcceptedToken.check(token, with: rules.verifier, wallMilliseconds: clock.wallMilliseconds)
    return accepted?.claims
  }

  func mayWrite(_ topic: String, _ claims: JSONValue) async -> Bool {
    let question = RealtimeQuestion(.write, topic: topic, claims: claims)
    if let decision = rules.policy.decision(question) { return decision == .allowed }
    return await rules.policy.ask?(question) == .allowed
  }

  var maximumPayloadBytes: Int { rules.settings.maximumPayloadBytes }
}

extension RealtimeHub: StackSocketOwner {
  // The server calls these on the loop thread, which is this actor's executor.
  nonisolated func upgrade(_ request: StackRequest) -> StackUpgradeVerdict? {
    assumeIsolated { $0.verdict(request) }
  }

  nonisolated func opened(_ socket: any StackWebSocket, as accepted: UpgradeRule.Accepted) {
    assumeIsolated { $0.add(socket, accepted) }
  }

  nonisolated func bytesArrived(on socket: any StackWebSocket) {
    assumeIsolated { hub in
      if !hub.faults.isSilent { hub.members[socket.id]?.state.bytesArrived(at: hub.instant) }
    }
  }

  nonisolated func received(_ message: WebSocketParser.Message, on socket: any StackWebSocket) {
    assumeIsolated { hub in
      if let input = hub.input(message) { hub.feed(input, to: socket.id) }
    }
  }

  nonisolated func closed(_ socket: any StackWebSocket) {
    assumeIsolated { $0.remove(socket.id) }
  }
}
