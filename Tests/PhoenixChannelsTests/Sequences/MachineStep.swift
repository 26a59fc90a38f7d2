import HostKit
import PhoenixChannels

/// One thing that happens to a machine, as data. Steps speak of references and timers by what they are to the machine
/// at that moment, so a history keeps its meaning when steps are taken out of it.
enum MachineStep: Sendable, Hashable {
  // The owner.
  case start, stop
  case subscribe(String), unsubscribe(String)
  case hint(ConnectionHint)
  /// The token of that number.
  case token(Int)
  case emptyToken, withdrawn, unavailable, ending

  // The transport.
  case opened
  case failed(isConfiguration: Bool)
  case closed(UInt16?)
  case refused(Int, retryAfter: Int?, body: String?)
  /// An event of a transport that is gone.
  case late(Late)

  // Frames; the topic is a short name.
  case answer(String, Ref, status: String, reason: String?)
  case close(String, Ref), error(String, Ref)
  case system(String, Ref, status: String, extension: String, message: String)
  /// Any other event of a channel: `broadcast`, `presence_state`, …
  case event(String, String, Ref)
  case heartbeatAnswer(Ref)
  case undecodable, oversized, pong

  // Time.
  /// Seconds; each timer fires at its own time.
  case advance(Double)
  /// Seconds in which no timer fires, as when the process is stopped.
  case sleep(Double)
  /// Until the earliest timer fires.
  case nextTimer
  /// One of the cancelled timers fires nevertheless, counted from the last.
  case staleTimer(Int)

  enum Ref: Sendable, Hashable, CaseIterable {
    /// Of the newest join, or the newest heartbeat.
    case current
    /// Of the one before.
    case previous
    /// `join_ref` of the join before, `ref` of the newest one.
    case mixed
    /// Of the newest leave.
    case leave
    /// One that was never used.
    case unknown
    case none
  }

  enum Late: Sendable, Hashable {
    case opened, closed, failed, refused, pong
    /// The answer to the newest join of a topic, on the transport before.
    case answer(String)
  }
}

// MARK: As source

extension MachineStep {
  /// What is typed to get this step.
  var source: String {
    switch self {
    case .start: ".start"
    case .stop: ".stop"
    case .subscribe(let topic): ".subscribe(\(topic.debugDescription))"
    case .unsubscribe(let topic): ".unsubscribe(\(topic.debugDescription))"
    case .hint(let hint): ".hint(.\(hint))"
    case .token(let number): ".token(\(number))"
    case .emptyToken: ".emptyToken"
    case .withdrawn: ".withdrawn"
    case .unavailable: ".unavailable"
    case .ending: ".ending"
    case .opened: ".opened"
    case .failed(let isConfiguration): ".failed(isConfiguration: \(isConfiguration))"
    case .closed(let code): ".closed(\(Self.text(code)))"
    case .refused(let status, let retryAfter, let body):
      ".refused(\(status), retryAfter: \(Self.text(retryAfter)), body: \(Self.text(body)))"
    case .late(.answer(let topic)): ".late(.answer(\(topic.debugDescription)))"
    case .late(let late): ".late(.\(late))"
    case .answer(let topic, let ref, let status, let reason):
      ".answer(\(topic.debugDescription), .\(ref), status: \(status.debugDescription), reason: \(Self.text(reason)))"
    case .close(let topic, let ref): ".close(\(topic.debugDescription), .\(ref))"
    case .error(let topic, let ref): ".error(\(topic.debugDescription), .\(ref))"
    case .system(let topic, let ref, let status, let name, let message):
      ".system(\(topic.debugDescription), .\(ref), status: \(status.debugDescription), "
        + "extension: \(name.debugDescription), message: \(message.debugDescription))"
    case .event(let name, let topic, let ref): ".event(\(name.debugDescription), \(topic.debugDescription), .\(ref))"
    case .heartbeatAnswer(let ref): ".heartbeatAnswer(.\(ref))"
    case .undecodable: ".undecodable"
    case .oversized: ".oversized"
    case .pong: ".pong"
    case .advance(let seconds): ".advance(\(seconds))"
    case .sleep(let seconds): ".sleep(\(seconds))"
    case .nextTimer: ".nextTimer"
    case .staleTimer(let index): ".staleTimer(\(index))"
    }
  }

  private static func text(_ value: String?) -> String { value?.debugDescription ?? "nil" }
  private static func text(_ value: (some BinaryInteger)?) -> String { value.map { "\($0)" } ?? "nil" }
}
