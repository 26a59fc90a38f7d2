import HostKit
import PhoenixChannels

/// Rules 3 and 9: what belongs to another transport or join, or does not parse, changes nothing.
extension MachineRules {
  /// Before the event is taken into the account.
  mutating func checkFrames(_ step: Step) {
    guard case .transport(let id, let event) = step.event else { return }
    guard id == transport else {
      if !step.effects.isEmpty || step.before != step.after {
        violate("an event of another transport changed something")
      }
      return
    }
    switch event {
    case .opened:
      if isOpen || isClosing, !isQuiet(step) { violate("opened again, and something changed") }
    case .frame(let result, _):
      guard isOpen, !isClosing else {
        if !isQuiet(step) { violate("a frame counted on a transport that is not open") }
        return
      }
      switch result {
      case .success(let frame): checkForeign(frame, step)
      case .failure(let error): checkUndecodable(error, step)
      }
    case .tooLarge: if isOpen, !isClosing { checkOversized(step) }
    case .pong, .refused, .failed, .closed: break
    }
  }

  private mutating func checkForeign(_ frame: PhoenixFrame, _ step: Step) {
    if frame.topic == PhoenixFrame.Name.phoenix {
      if !isQuiet(step) { violate("a heartbeat answer did more than count") }
      return
    }
    let state = step.before.topics.first { $0.topic.wireName == frame.topic }?.state
    let current = state == .joining || state == .joined ? newestJoins[frame.topic] : nil
    let isForeign: Bool
    switch frame.event {
    case "phx_reply":
      isForeign = state != .joining || frame.ref != current || (frame.joinRef != nil && frame.joinRef != current)
    case "phx_close", "phx_error":
      let named = frame.joinRef ?? frame.ref
      isForeign = named == nil ? state != .joined : named != current
    default: isForeign = current == nil || (frame.joinRef != nil && frame.joinRef != current)
    }
    if isForeign, !isQuiet(step) { violate("\(frame.event) of another join changed something") }
  }

  private mutating func checkUndecodable(_ error: PhoenixDecodingError, _ step: Step) {
    var expected = step.before
    expected.counters.framesReceived += 1
    expected.counters.framesUndecodable += 1
    let effects = step.effects.filter { effect in
      switch effect {
      case .schedule(let token, _), .cancel(let token): token.kind != .answer
      default: true
      }
    }
    if step.after != expected || effects != [.note(.undecodable(error))] {
      violate("what does not parse was not ignored")
    }
  }

  private mutating func checkOversized(_ step: Step) {
    let expected = step.before.topics.filter { $0.state == .joining || $0.state == .joined }.map(\.topic)
    let rung = step.effects.compactMap { effect -> [ChannelTopic]? in
      if case .ring(let ring) = effect, ring.cause == .oversized { ring.topics } else { nil }
    }
    if rung != (expected.isEmpty ? [] : [expected]) { violate("a message dropped for its size did not ring") }
  }
}
