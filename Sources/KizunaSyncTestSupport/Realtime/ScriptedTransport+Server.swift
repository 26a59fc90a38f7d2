import HostKit
import PhoenixChannels
import SupabaseRealtime

/// The server's half. Everything here runs on the transport's thread.
extension ScriptedTransport {
  private var newest: ScriptedConnection? { state.withLock { $0.connections.last { !$0.isOver } } }

  // MARK: Playing

  /// Performs steps until one has to wait.
  func advance() {
    while let step = state.withLock({ $0.isHeld ? nil : $0.script.first }) {
      guard take(step) else { return }
    }
    guard state.withLock({ $0.script.isEmpty && !$0.isHeld }) else { return }
    cooperate()
  }

  private func removeFirst() { state.withLock { _ = $0.script.removeFirst() } }

  /// - Returns: whether the step is done.
  private func take(_ step: RealtimeScript.Step) -> Bool {
    switch step {
    case .accept, .refuse, .fail, .stall:
      guard let connection = newest, connection.isConnecting else { return false }
      complainOfLeftovers(before: connection.number)
      if failsUnreachable(connection) { return false }
      removeFirst()
      answer(connection, step)
    case .expect(let expected):
      // What an older connection sent is not what is expected of this one.
      complainOfLeftovers(before: state.withLock { $0.connections.last?.number ?? 0 })
      guard let sent = nextUnmet() else { return false }
      removeFirst()
      check(sent, expected)
    case .expectClose:
      guard newest.map(\.isClosing) ?? true else { return false }
      removeFirst()
    case .wait(let duration):
      removeFirst()
      state.withLock { $0.isHeld = true }
      clock.schedule(after: duration) { [weak self] in
        self?.onThread { transport in
          transport.state.withLock { $0.isHeld = false }
          transport.advance()
        }
      }
    default:
      removeFirst()
      perform(step)
    }
    return true
  }

  private func answer(_ connection: ScriptedConnection, _ step: RealtimeScript.Step) {
    switch step {
    case .accept: connection.open()
    case .refuse(let status, let body, let retryAfter):
      connection.end(.refused(status: status, retryAfterSeconds: retryAfter, body: body))
    case .fail(let failure): connection.end(.failed(failure))
    default: break
    }
  }

  private func failsUnreachable(_ connection: ScriptedConnection) -> Bool {
    guard state.withLock({ !$0.isReachable }) else { return false }
    connection.end(.failed(RealtimeTransportFailure(.unreachable, "the scripted network is away")))
    return true
  }

  /// What the server does without waiting for the client.
  func perform(_ step: RealtimeScript.Step) {
    switch step {
    case .reply(let status, let response):
      guard let sent = state.withLock({ $0.lastExpected }) else {
        return report("the script replies before it has expected anything")
      }
      reply(to: sent, status: status, response)
    case .send(let frame): if let newest { send(frame, on: newest) }
    case .sendRaw(let message): newest?.deliver(.message(message, receivedAt: SystemClock.monotonic))
    case .broadcast(let topic, let event, let payload):
      guard let newest else { return }
      let broadcast = UserBroadcast(event: event, content: .json(payload))
      let frame = PhoenixFrame(
        topic: ChannelTopic.prefix + topic, event: PhoenixFrame.Name.broadcast, payload: .broadcast(broadcast))
      send(frame, on: newest)
    case .tooLarge(let bytes): newest?.deliver(.messageTooLarge(bytes: bytes))
    case .answerHeartbeats(let answers): state.withLock { $0.answersHeartbeats = answers }
    case .close(let code, let reason): newest?.end(.closed(code: code, reason: reason))
    case .cut: newest?.end(.failed(RealtimeTransportFailure(.connectionLost, "the script cut the connection")))
    case .accept, .refuse, .fail, .stall, .expect, .expectClose, .wait: break
    }
  }

  private func send(_ frame: PhoenixFrame, on connection: ScriptedConnection) {
    do {
      let message = try connection.serializer.encode(frame)
      connection.deliver(.message(message, receivedAt: SystemClock.monotonic))
    } catch {
      report("the script sends what cannot be sent: \(error)")
    }
  }

  private func reply(to sent: Sent, status: String, _ response: JSONValue) {
    guard let connection = state.withLock({ $0.connections.first { $0.number == sent.connection } }) else { return }
    let frame = PhoenixFrame(
      joinRef: sent.frame.joinRef, ref: sent.frame.ref, topic: sent.frame.topic, event: PhoenixFrame.Name.reply,
      ["status": .string(status), "response": response])
    send(frame, on: connection)
  }

  // MARK: Frames from the client

  func received(_ message: PhoenixMessage, on connection: ScriptedConnection) {
    do {
      let frame = try connection.serializer.decode(message)
      let sent = Sent(frame: frame, at: clock.now, connection: connection.number)
      state.withLock { $0.sent.append(sent) }
      if frame.event == PhoenixFrame.Name.heartbeat, !expectsHeartbeat {
        return onThread { $0.answerHeartbeat(sent) }
      }
      state.withLock { $0.unmet.append(sent) }
    } catch {
      report("the client sent what is no frame: \(error)")
    }
    // Answers come later, as they do on a network.
    onThread { $0.advance() }
  }

  private var expectsHeartbeat: Bool {
    state.withLock { state in
      if case .expect(let expected) = state.script.first {
        expected.event == PhoenixFrame.Name.heartbeat
      } else {
        false
      }
    }
  }

  /// The oldest frame no expectation has met.
  private func nextUnmet() -> Sent? {
    state.withLock { $0.unmet.isEmpty ? nil : $0.unmet.removeFirst() }
  }

  /// Frames of connections before this one that no expectation was for, a second join among them.
  private func complainOfLeftovers(before connection: Int) {
    complain(
      of: state.withLock { state in
        let left = state.unmet.filter { $0.connection < connection }
        state.unmet.removeAll { $0.connection < connection }
        return left
      })
  }

  private func complain(of surplus: [Sent]) {
    for sent in surplus {
      report(
        """
        a frame that nothing expected, at \(sent.at.inSeconds) s on connection \(sent.connection)
          expected nothing
          sent     \(sent)
        """)
    }
  }

  private func answerHeartbeat(_ sent: Sent) {
    if state.withLock({ $0.answersHeartbeats }) { reply(to: sent, status: "ok", [:]) }
  }

  private func check(_ sent: Sent, _ expected: ExpectedFrame) {
    let differences = expected.differences(from: sent.frame)
    state.withLock { $0.lastExpected = sent }
    guard !differences.isEmpty else { return }
    report(
      """
      a frame was not as expected, at \(sent.at.inSeconds) s on connection \(sent.connection)
        expected \(expected)
        sent     \(sent)
      """ + differences.map { "\n    \($0)" }.joined())
    // What follows would only repeat the complaint.
    state.withLock { $0.isHeld = true }
  }

  /// What the script waits for, in words; nil when it has come to its end or has complained.
  var waiting: String? {
    let (step, count, last, isHeld) = state.withLock { ($0.script.first, $0.script.count, $0.sent.last, $0.isHeld) }
    guard let step, problems.isEmpty else { return nil }
    let wanted =
      switch step {
      case .accept, .refuse, .fail, .stall: "the client to connect"
      case .expect(let expected): "\(expected)"
      case .expectClose: "the client to close the connection"
      default: "\(step)"
      }
    return """
      the script is not at its end, at \(clock.now.inSeconds) s: \(count) steps are left
        expected \(isHeld ? "its time to pass" : wanted)
        sent     \(last.map { "\($0), at \($0.at.inSeconds) s on connection \($0.connection)" } ?? "nothing")
      """
  }

  private func report(_ problem: String) { state.withLock { $0.problems.append(problem) } }

  // MARK: Without a script

  private func complainOfAnything() {
    complain(
      of: state.withLock { state in
        defer { state.unmet = [] }
        return state.unmet
      })
    guard let connection = newest, connection.isConnecting else { return }
    let isNew = state.withLock { state in
      defer { state.surplusConnection = connection.number }
      return state.surplusConnection != connection.number
    }
    if isNew { report("a connection that nothing expected, at \(clock.now.inSeconds) s: number \(connection.number)") }
  }

  private func cooperate() {
    switch state.withLock({ $0.afterwards }) {
    case .cooperate: break
    case .silence: return state.withLock { $0.unmet = [] }
    case .complain: return complainOfAnything()
    }
    if let connection = newest, connection.isConnecting, !failsUnreachable(connection) { connection.open() }
    while let sent = nextUnmet() {
      switch sent.frame.event {
      case PhoenixFrame.Name.join: reply(to: sent, status: "ok", ["postgres_changes": []])
      case PhoenixFrame.Name.leave:
        reply(to: sent, status: "ok", [:])
        guard let connection = newest else { continue }
        send(
          PhoenixFrame(
            joinRef: sent.frame.joinRef, ref: sent.frame.joinRef, topic: sent.frame.topic,
            event: PhoenixFrame.Name.close, [:]), on: connection)
      default: break
      }
    }
  }
}
