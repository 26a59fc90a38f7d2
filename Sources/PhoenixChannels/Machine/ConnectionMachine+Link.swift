import HostKit

/// The transport: attempts, their end, and when the next one is due.
extension ConnectionMachine {
  // MARK: Attempts

  /// First connection after a start or a first subscription, or the next one after credentials came.
  /// - Parameter isHint: a person asks for it.
  mutating func connectIfWanted(isHint: Bool = false, _ turn: inout Turn) {
    guard !channels.isEmpty else { return }
    let delay: UInt64
    switch plan {
    case .disconnected: delay = schedule.delayAgain(policy.reconnect, turn)
    case .awaitingCredentials where isHint: delay = hintDelay(turn)
    // What was refused is not what is tried now.
    case .awaitingCredentials: delay = 0
    case .stopped, .live, .waiting, .suspended: return
    }
    if credentials.areUseless {
      plan = .awaitingCredentials
    } else if !pathSatisfied || schedule.isSpent(at: turn.now, policy.reconnect) {
      suspend(&turn)
    } else {
      wait(for: delay, &turn)
    }
  }

  /// Plans the next attempt; at once when there is nothing to wait for.
  private mutating func wait(for delay: UInt64, _ turn: inout Turn) {
    let until = max(turn.now + delay, schedule.notBefore)
    plan = .waiting(until: until)
    if until > turn.now {
      timers.arm(.reconnect, at: until, &turn)
      turn.note(.waiting(until: until))
    } else if link == .none {
      attempt(&turn)
    }
  }

  private mutating func suspend(_ turn: inout Turn) {
    let until = max(
      turn.now + turn.around(policy.slowRetry, share: policy.slowRetrySpread), schedule.notBefore)
    plan = .suspended(until: until)
    timers.arm(.reconnect, at: until, &turn)
    turn.note(.suspended(until: until))
  }

  mutating func reconnectDue(_ turn: inout Turn) {
    // A transport that is still closing is waited for; its end makes the attempt.
    guard link == .none else { return }
    switch plan {
    case .waiting, .suspended: attempt(&turn)
    case .stopped, .disconnected, .live, .awaitingCredentials: break
    }
  }

  private mutating func attempt(_ turn: inout Turn) {
    timers.cancel(.reconnect, &turn)
    schedule.recordAttempt(at: turn.now, policy.reconnect)
    counters.attempts += 1
    let id = nextTransport()
    plan = .live
    link = .connecting(id)
    timers.arm(.handshake, at: turn.now + policy.handshakeDeadline, &turn)
    turn.note(.connecting(attempt: schedule.streak + 1))
    turn.effects.append(.connect(id))
  }

  // MARK: Events of the transport

  /// - Parameter id: of the transport that exists.
  mutating func transport(_ id: TransportID, _ event: TransportEvent, _ turn: inout Turn) {
    switch link {
    case .none: break
    case .closing:
      switch event {
      case .refused, .failed, .closed: linkGone(&turn)
      case .opened, .frame, .tooLarge, .pong: break
      }
    case .connecting, .open: live(id, event, &turn)
    }
  }

  private mutating func live(_ id: TransportID, _ event: TransportEvent, _ turn: inout Turn) {
    switch event {
    case .opened: opened(id, &turn)
    case .frame(let result, let receivedAt):
      guard openTransport != nil else { return }
      heartbeat.received(at: turn.now)
      counters.framesReceived += 1
      turn.receivedAt = receivedAt
      switch result {
      case .success(let frame): receive(frame, &turn)
      case .failure(let error):
        counters.framesUndecodable += 1
        turn.note(.undecodable(error))
      }
    case .tooLarge(let bytes):
      guard openTransport != nil else { return }
      heartbeat.received(at: turn.now)
      counters.framesOversized += 1
      turn.note(.oversized(bytes: bytes))
      ring(channels.filter { $0.currentRef != nil }.map(\.topic), .oversized, &turn)
    case .pong: heartbeat.received(at: turn.now)
    case .refused(let status, let retryAfter, let body):
      refused(status: status, retryAfterSeconds: retryAfter, body: body, &turn)
    case .failed(let text, let isConfiguration):
      lost(FailureReport(isConfiguration ? .config : .transient, text), &turn)
    case .closed(let code, let reason):
      lost(announcedClose ?? RefusalTables.close(code: code, reason: reason), &turn)
    }
  }

  private mutating func opened(_ id: TransportID, _ turn: inout Turn) {
    // A repeated report must not set things up twice.
    guard link == .connecting(id) else { return }
    link = .open(id)
    timers.cancel(.handshake, &turn)
    counters.opened += 1
    schedule.serverErrors = 0
    joinWindow = 1
    heartbeat.opened(at: turn.now)
    armHeartbeat(&turn)
    turn.note(.opened)
    if credentials.required, credentials.token == nil { askCredentials(fresh: false, &turn) }
  }

  private mutating func refused(status: Int, retryAfterSeconds: Int?, body: String?, _ turn: inout Turn) {
    let refusal = RefusalTables.upgrade(status: status, body: body)
    if refusal.countsAsServerError {
      schedule.serverErrors += 1
      let limit = policy.reconnect.serverErrorsBeforeFreshCredentials
      if schedule.serverErrors >= limit { askFreshCredentials(&turn) }
    }
    if refusal.isAmbiguous { askFreshCredentials(&turn) }
    if refusal.report.failureClass == .auth, credentials.required {
      credentials.refused(credentials.serial)
      askFreshCredentials(&turn)
    }
    lost(refusal.report, retryAfterSeconds: retryAfterSeconds, &turn)
  }

  mutating func handshakeOverdue(_ turn: inout Turn) {
    drop(FailureReport(.transient, "the server did not answer the handshake in time"), &turn)
  }

  // MARK: The end of a transport

  /// The live transport has ended by itself.
  private mutating func lost(_ report: FailureReport, retryAfterSeconds: Int? = nil, _ turn: inout Turn) {
    link = .none
    linkEnded(&turn)
    planNext(after: report, retryAfterSeconds: retryAfterSeconds, &turn)
  }

  /// Ends the live transport because it is of no use, and plans the next.
  mutating func drop(_ report: FailureReport, _ turn: inout Turn) {
    endLink(code: 1000, reason: "", &turn)
    planNext(after: report, retryAfterSeconds: nil, &turn)
  }

  /// Closes a live transport; does nothing when there is none.
  mutating func endLink(code: UInt16, reason: String, _ turn: inout Turn) {
    switch link {
    case .none, .closing: return
    case .connecting(let id), .open(let id):
      turn.effects.append(.close(id, code: code, reason: reason))
      link = .closing(id)
      timers.arm(.close, at: turn.now + policy.closeDeadline, &turn)
      linkEnded(&turn)
    }
  }

  /// Nothing of what was agreed on the old transport holds any more.
  private mutating func linkEnded(_ turn: inout Turn) {
    for kind in [TimerToken.Kind.handshake, .heartbeat, .answer, .stability, .idle, .joinHold] {
      timers.cancel(kind, &turn)
    }
    for index in channels.indices {
      let topic = channels[index].topic
      switch channels[index].phase {
      case .joining, .joined:
        timers.cancel(.join(topic), &turn)
        channels[index].phase = .idle
      case .backingOff:
        timers.cancel(.rejoin(topic), &turn)
        channels[index].phase = .idle
      // The same credentials would be denied again.
      case .denied, .idle: break
      }
      channels[index].notice = nil
    }
    serverQueue = ServerQueue()
    joinsHeldUntil = nil
    joinsAwaitRoom = false
    announcedClose = nil
    isStable = false
    if plan != .stopped { flushRings(&turn) }
  }

  mutating func closeOverdue(_ turn: inout Turn) {
    guard case .closing(let id) = link else { return }
    turn.effects.append(.abandon(id))
    linkGone(&turn)
  }

  private mutating func linkGone(_ turn: inout Turn) {
    link = .none
    timers.cancel(.close, &turn)
    if stopIsPending {
      stopIsPending = false
      turn.effects.append(.stopped)
    }
    switch plan {
    case .waiting(let until), .suspended(let until): if until <= turn.now { attempt(&turn) }
    case .stopped, .disconnected, .awaitingCredentials, .live: break
    }
  }

  private mutating func planNext(after report: FailureReport, retryAfterSeconds: Int?, _ turn: inout Turn) {
    lastFailure = report
    counters.connectionFailures[report.failureClass, default: 0] += 1
    if report.isUnknown { counters.refusalsUnknown += 1 }
    turn.note(.lost(report))
    let delay = schedule.nextDelay(
      after: report.failureClass, retryAfterSeconds: retryAfterSeconds, policy.reconnect, turn)
    if channels.isEmpty {
      plan = .disconnected
    } else if credentials.areUseless {
      plan = .awaitingCredentials
      turn.note(.awaitingCredentials)
    } else if !pathSatisfied || needsOperator(report) || schedule.isSpent(at: turn.now, policy.reconnect) {
      suspend(&turn)
    } else {
      wait(for: delay, &turn)
    }
  }

  /// Only a person can mend it. A refused key is such a case when there is nobody to ask for another.
  func needsOperator(_ report: FailureReport) -> Bool {
    report.failureClass == .config || (report.failureClass == .auth && !credentials.required)
  }

  // MARK: Hints

  mutating func hint(_ hint: ConnectionHint, _ turn: inout Turn) {
    if hint == .pathSatisfied { pathSatisfied = true }
    if hint == .pathUnsatisfied {
      pathSatisfied = false
      if case .waiting = plan { suspend(&turn) }
      return
    }
    switch plan {
    case .waiting(let until), .suspended(let until): bringForward(from: until, &turn)
    case .live:
      probe(&turn)
      if hint == .manual { retryDenied(&turn) }
    case .awaitingCredentials: if hint == .manual { retryCredentials(&turn) }
    case .stopped, .disconnected: break
    }
  }

  /// A draw, and no sooner after the last attempt than that could last: hints may come in floods.
  private func hintDelay(_ turn: Turn) -> UInt64 {
    let drawn = turn.upTo(policy.reconnect.hintSpread)
    guard let last = schedule.lastAttempt, turn.now < last + policy.reconnect.hintSpread else { return drawn }
    return max(drawn, last + policy.reconnect.hintSpread - turn.now)
  }

  private mutating func bringForward(from until: UInt64, _ turn: inout Turn) {
    var at = max(turn.now + hintDelay(turn), schedule.notBefore)
    if schedule.isSpent(at: turn.now, policy.reconnect), let last = schedule.lastAttempt {
      at = max(at, last + policy.reconnect.hintSpacing)
    }
    at = min(at, until)
    plan = .waiting(until: at)
    // An attempt that is due and only waits for the old transport stays due.
    if at > turn.now || link == .none { timers.arm(.reconnect, at: max(at, turn.now), &turn) }
  }
}
