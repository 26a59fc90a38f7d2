import HostKit

/// Tokens: when they are asked for, what a refusal means, and how a new one spreads.
extension ConnectionMachine {
  /// New credentials are due soon, because somebody was asked.
  private var awaitsAnswer: Bool { credentials.isAsking || timers.isArmed(.credentials) }

  mutating func askCredentials(fresh: Bool, _ turn: inout Turn) {
    guard !credentials.isAsking, !timers.isArmed(.credentials) else { return }
    credentials.isAsking = true
    credentials.wantsFresh = fresh
    counters.credentialRequests += 1
    turn.effects.append(.requestCredentials(refresh: fresh))
  }

  /// Once until a token proves good.
  mutating func askFreshCredentials(_ turn: inout Turn) {
    guard !credentials.isAsking, credentials.mayAskFresh() else { return }
    timers.cancel(.credentials, &turn)
    askCredentials(fresh: true, &turn)
  }

  mutating func receive(_ update: CredentialUpdate, _ turn: inout Turn) {
    if case .ending = update {
      if plan != .stopped, credentials.end() { askCredentials(fresh: false, &turn) }
      return
    }
    // Only a question can remain unanswered.
    if case .unavailable = update, !credentials.isAsking { return }
    credentials.isAsking = false
    timers.cancel(.credentials, &turn)
    switch update {
    case .token(let token) where !token.isEmpty:
      credentials.unavailableStreak = 0
      if credentials.receive(token) { newToken(&turn) }
      if plan == .awaitingCredentials { connectIfWanted(&turn) }
    case .token, .withdrawn:
      credentials.unavailableStreak = 0
      credentials.withdraw()
      guard plan != .stopped else { return }
      timers.cancel(.reconnect, &turn)
      awaitCredentials(&turn)
    case .ending: break
    case .unavailable:
      credentials.makeDo()
      guard plan != .stopped else { return }
      let delay = Backoff.delay(
        base: policy.join.backoffBase, factor: policy.join.backoffFactor, cap: policy.join.backoffCap,
        failuresBefore: credentials.unavailableStreak)
      credentials.unavailableStreak += 1
      timers.arm(.credentials, at: turn.now + turn.upperHalf(delay), &turn)
    }
  }

  private mutating func newToken(_ turn: inout Turn) {
    for index in channels.indices {
      switch channels[index].phase {
      case .joined: pushToken(index, &turn)
      case .denied:
        timers.cancel(.rejoin(channels[index].topic), &turn)
        channels[index].phase = .idle
      // One that is joining gets it after its reply.
      case .idle, .joining, .backingOff: break
      }
    }
  }

  /// A token is good when a channel has stood with it for the stability window.
  mutating func proveCredentials(_ turn: Turn) {
    guard credentials.freshAsked, !credentials.isRefused else { return }
    for channel in channels where channel.isJoined {
      if turn.now >= channel.tokenSince + policy.reconnect.stabilityWindow { credentials.proved(channel.tokenSerial) }
    }
  }

  /// Gives a joined channel the newest token. There is no answer.
  mutating func pushToken(_ index: Int, _ turn: inout Turn) {
    guard let id = openTransport, let token = credentials.token, let joinRef = channels[index].currentRef else {
      return
    }
    channels[index].tokenSerial = credentials.serial
    channels[index].tokenSince = turn.now
    counters.tokensPushed += 1
    let frame = PhoenixFrame(
      joinRef: joinRef, ref: nextRef(), topic: channels[index].topic.wireName, event: PhoenixFrame.Name.accessToken,
      ["access_token": .string(token)])
    turn.effects.append(.send(id, frame))
  }

  /// Leaves a connection on which nothing can be joined any more.
  mutating func tidyCredentials(_ turn: inout Turn) {
    if credentials.isRefused { askFreshCredentials(&turn) }
    // A connection that stands is kept while somebody looks for a better token.
    guard plan == .live, !channels.isEmpty, credentials.areUseless, credentials.isWithdrawn || !awaitsAnswer else {
      return
    }
    guard !channels.contains(where: { $0.currentRef != nil }) else { return }
    awaitCredentials(&turn)
  }

  private mutating func awaitCredentials(_ turn: inout Turn) {
    guard plan != .awaitingCredentials else { return }
    plan = channels.isEmpty ? .disconnected : .awaitingCredentials
    endLink(code: 1000, reason: "", &turn)
    if plan == .awaitingCredentials { turn.note(.awaitingCredentials) }
  }

  /// A person asks to try again.
  mutating func retryCredentials(_ turn: inout Turn) {
    credentials.forgive()
    if credentials.required { askFreshCredentials(&turn) }
    connectIfWanted(isHint: true, &turn)
  }
}
