import HostKit
import PhoenixChannels

/// Rules 6, 7 and 10: credentials, rings, and what may be said.
extension MachineRules {
  mutating func checkCredentials(_ step: Step) {
    // Whoever is asked in vain may be asked again; that is taken off when the answer comes.
    if freshAsks > 1 { violate("asks for fresh credentials again") }
    if step.after.counters.credentialRequests < step.before.counters.credentialRequests { violate("uncounted") }
    guard isRefused || isWithdrawn else { return }
    for effect in step.effects {
      if case .connect = effect { violate("connects with refused or withdrawn credentials") }
    }
  }

  /// Of a frame that is being sent.
  mutating func checkTokens(_ frame: PhoenixFrame) {
    let sent = frame.json?["access_token"]?.stringValue
    switch frame.event {
    case "phx_join":
      if policy.usesCredentials, sent == nil { violate("joins without a token") }
      if sent != token { violate("joins with an old token") }
      if isRefused, policy.usesCredentials { violate("joins with refused credentials") }
      if frame.json?["config"] == nil { violate("joins without config") }
    case "access_token": if sent != token { violate("pushes an old token") }
    default: if sent != nil { violate("\(frame.event) carries a token") }
    }
  }

  mutating func observe(_ ring: ConnectionRing) {
    if isStopped { violate("rings after the stop") }
    if ring.topics.isEmpty { violate("rings for nothing") }
    guard ring.cause == .joined else { return }
    for topic in ring.topics where unrung.removeValue(forKey: topic.wireName) == nil {
      violate("rings twice for one join of \(topic)")
    }
  }

  mutating func checkRings(_ step: Step) {
    // After a sleep the timer may be due and not have fired yet.
    let ringIsDue = step.deadline(.ring).map { $0 <= step.now } ?? false
    for (topic, since) in unrung where step.now > since + policy.join.ringDelay && !ringIsDue && !isStopped {
      violate("\(topic) was joined and not rung")
    }
    if !unrung.isEmpty, outstanding.isEmpty, !isStopped { violate("no join is out, and \(unrung.keys) were not rung") }
  }

  mutating func checkSecrets(_ step: Step) {
    var said = [step.after.lastFailure?.text] + step.after.topics.map(\.lastFailure?.text)
    for effect in step.effects {
      switch effect {
      case .note(.lost(let report)), .note(.refused(_, let report)), .note(.replaced(let report)),
        .note(.warning(_, let report)):
        said.append(report.text)
      case .close(_, _, let reason): said.append(reason)
      default: break
      }
    }
    for text in said {
      guard let text else { continue }
      if tokens.contains(where: { $0.utf8.count > 6 && text.contains($0) }) { violate("says a token") }
    }
  }
}
