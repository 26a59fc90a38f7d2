import HostKit
import PhoenixChannels

/// Decides whether a topic may be joined (Realtime wire contract §4 and §5).
struct JoinRule {
  enum Outcome: Equatable {
    case accepted(RealtimeChannel, postgresChanges: [JSONValue], presence: Bool)
    case refused(reason: String)
    /// What has to be known first.
    case asks(RealtimeQuestion)
  }

  let rules: RealtimeSocket.Rules
  /// The key of the socket, for joins without a token of their own.
  let connectToken: AcceptedToken
  let joinedChannels: Int
  /// What the policy says; nil when that is not known yet.
  let decide: (RealtimeQuestion) -> RealtimeDecision?

  func outcome(of frame: PhoenixFrame, at instant: RealtimeSocket.Instant) -> Outcome {
    let topic = String(frame.topic.dropFirst("realtime:".count))
    guard !topic.isEmpty else {
      return .refused(reason: "TopicNameRequired: You must provide a topic name")
    }
    if rules.isRestarting {
      return .refused(reason: "RealtimeRestarting: Realtime is restarting, please standby")
    }
    guard let request = try? JoinRequest(frame.json ?? [:]) else {
      return .refused(reason: "UnknownErrorOnChannel: no function clause matching in Access.get/3")
    }
    guard joinedChannels < rules.settings.maximumChannelsPerSocket else {
      return .refused(reason: "ChannelRateLimitReached: Too many channels")
    }
    let token: AcceptedToken
    do throws(TokenRefusal) {
      token = try self.token(of: request, instant)
    } catch {
      return .refused(reason: error.joinReason)
    }
    if rules.settings.privateOnly, !request.isPrivate {
      return .refused(reason: "PrivateOnly: This project only allows private channels")
    }
    if request.isPrivate {
      let question = RealtimeQuestion(.read, topic: topic, claims: token.claims)
      switch decide(question) {
      case nil: return .asks(question)
      case .allowed: break
      case .denied:
        return .refused(
          reason: "Unauthorized: You do not have permissions to read from this Channel topic: \(topic)")
      case .unavailable:
        return .refused(reason: "UnableToConnectToProject: Realtime was unable to connect to the project database")
      }
    }
    if let refusal = replayRefusal(request) { return .refused(reason: refusal) }
    let channel = RealtimeChannel(
      topic: frame.topic, room: RealtimeRoom(topic: topic, isPrivate: request.isPrivate), joinRef: frame.joinRef,
      ref: frame.ref, hasNumericReferences: frame.hasNumericReferences, token: token,
      acknowledges: request.acknowledges, receivesOwn: request.receivesOwn,
      tokenCheckAt: Self.tokenCheck(token, rules.settings, instant),
      readyAt: request.wantsReplicationReady ? instant.now + rules.settings.replicationReadyDelay : nil)
    return .accepted(
      channel, postgresChanges: PostgresChanges.echo(request, topic: topic), presence: request.presenceEnabled)
  }

  private func token(
    of request: JoinRequest, _ instant: RealtimeSocket.Instant
  ) throws(TokenRefusal) -> AcceptedToken {
    guard let text = request.accessToken, !text.hasPrefix("sb_"), text != connectToken.text else {
      if let refusal = connectToken.expiry(wallMilliseconds: instant.wallMilliseconds) { throw refusal }
      return connectToken
    }
    return try AcceptedToken.check(text, with: rules.verifier, wallMilliseconds: instant.wallMilliseconds)
  }

  private func replayRefusal(_ request: JoinRequest) -> String? {
    guard let replay = request.replay else { return nil }
    guard request.isPrivate else {
      return "UnableToReplayMessages: Replay is not allowed for public channels"
    }
    let limit = replay["limit"]?.intValue ?? 25
    guard replay["since"]?.intValue != nil, (1...25).contains(limit) else {
      return "UnableToReplayMessages: Replay params are not valid"
    }
    return nil
  }

  /// When a token is looked at next, on the clock of timers.
  static func tokenCheck(
    _ token: AcceptedToken, _ settings: RealtimeSettings, _ instant: RealtimeSocket.Instant
  ) -> UInt64 {
    let left = max(0, token.expiresAt * 1_000 - Double(instant.wallMilliseconds))
    let interval = Double(settings.tokenCheckInterval)
    return instant.now + UInt64(min(interval, left * 1_000_000).rounded(.up))
  }
}
