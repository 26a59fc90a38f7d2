import HostKit
import PhoenixChannels

/// Rules 1, 2 and 8: one transport, one reconnect, one join; and something always leads on.
///
/// A topic is joined from the answer to its join until the server ends the channel, the transport is gone, or nobody
/// wants it any more. Nothing else takes it out of service, so none is joined twice on one transport.
extension MachineRules {
  mutating func checkTransport(_ step: Step) {
    let kinds = step.timers.map(\.token.kind)
    if Set(kinds).count != kinds.count { violate("two timers of one kind") }
    if transport != nil, !isClosing, kinds.contains(.reconnect) { violate("a reconnect is armed beside a transport") }
    if case .backingOff(let until) = step.after.state, !isClosing, until > step.now, !kinds.contains(.reconnect) {
      violate("waits without a timer")
    }
    if case .suspended = step.after.state, !kinds.contains(.reconnect), !isClosing {
      violate("suspended without a timer")
    }
    if step.after.state == .connecting, !kinds.contains(.handshake) { violate("connects without a deadline") }
    if step.after.state == .open, !kinds.contains(.heartbeat) { violate("open without a heartbeat") }
    if isClosing, !kinds.contains(.close) { violate("closes without a deadline") }
    if step.after.state == .disconnected, !step.after.topics.isEmpty {
      violate("disconnected although topics are wanted")
    }
    switch step.after.state {
    case .open, .connecting:
      if transport == nil || isClosing { violate("\(step.after.state) without a transport") }
    case .stopped, .disconnected, .backingOff, .suspended, .awaitingCredentials:
      if transport != nil, !isClosing { violate("\(step.after.state) with a transport") }
    }
  }

  mutating func checkTopics(_ step: Step) {
    let kinds = Set(step.timers.map(\.token.kind))
    let (topics, state) = (step.after.topics, step.after.state)
    for topic in topics {
      switch topic.state {
      case .joining:
        if !kinds.contains(.join(topic.topic)) { violate("joins \(topic.topic) without a deadline") }
        if state != .open { violate("\(topic.topic) is joining without a connection") }
        if newestJoins[topic.topic.wireName].flatMap({ outstanding[$0] }) == nil {
          violate("\(topic.topic) is joining and no join is out")
        }
      case .joined: if state != .open { violate("\(topic.topic) is joined without a connection") }
      case .backingOff:
        if !kinds.contains(.rejoin(topic.topic)) { violate("\(topic.topic) backs off without a timer") }
      case .denied:
        if state != .stopped, !kinds.contains(.rejoin(topic.topic)) { violate("\(topic.topic) is denied for ever") }
      case .idle: break
      }
    }
    let joining = topics.filter { $0.state == .joining }.map(\.topic)
    if outstanding.count != joining.count { violate("\(outstanding.count) joins are out for \(joining)") }
    let joined = topics.filter { $0.state == .joined }.map(\.topic.wireName)
    if Set(joined) != Set(standing.keys) {
      violate("joined are \(joined.sorted()), by what was said and done \(standing.keys.sorted())")
    }
    let isReady = state == .open && !topics.isEmpty && topics.allSatisfy { $0.state == .joined }
    if step.after.isReady != isReady { violate("ready is not what the topics say") }
    for case .join(let topic) in kinds where !joining.contains(topic) {
      violate("a join deadline for \(topic), which is not joining")
    }
    for case .rejoin(let topic) in kinds {
      switch topics.first(where: { $0.topic == topic })?.state {
      case .backingOff, .denied: break
      case let state: violate("a rejoin of \(topic), which is \(String(describing: state))")
      }
    }
  }

  mutating func checkStop(_ step: Step) {
    if stopIsComplete, !step.timers.isEmpty { violate("timers after the stop: \(step.timers.map(\.token.kind))") }
    guard step.after.state == .stopped else { return }
    for effect in step.effects {
      switch effect {
      case .close, .abandon, .cancel, .stopped, .note(.left): break
      case .schedule(let token, _): if token.kind != .close { violate("arms \(token.kind) although stopped") }
      case .connect, .send, .requestCredentials, .ring, .note: violate("\(effect) although stopped")
      }
    }
  }
}
