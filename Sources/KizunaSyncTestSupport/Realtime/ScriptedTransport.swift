import HostKit
import PhoenixChannels
import SupabaseRealtime

/// A WebSocket transport without a network: it plays a script, and after the script, or without one, a server that
/// accepts every connection and every join.
///
/// It has a thread of its own, on which the connections that use it run. Times are those of the virtual clock.
///
///     let clock = VirtualClock()
///     let transport = ScriptedTransport(clock: clock, [.accept, .expect(.join("todos")), .reply(), .cut])
///     …
///     await clock.settle()
///     #expect(transport.problems.isEmpty)
public final class ScriptedTransport: RealtimeTransport {
  /// What happens once the script has come to its end.
  public enum Afterwards: Sendable {
    /// Accepts connections and joins, answers heartbeats and leaves.
    case cooperate
    /// Answers nothing any more, and does not care what the client sends.
    case silence
    /// Answers heartbeats; any other frame, and any connection, is one too many and becomes a problem.
    case complain
  }

  /// One frame the client sent.
  public struct Sent: Sendable, CustomStringConvertible {
    public let frame: PhoenixFrame
    /// Virtual nanoseconds.
    public let at: UInt64
    /// Number of the connection, from 1.
    public let connection: Int

    public var description: String {
      let payload =
        switch frame.payload {
        case .json(let payload): payload.description
        case .broadcast(let broadcast): "broadcast \(broadcast.event)"
        case .bytes(let bytes), .reply(_, let bytes): "\(bytes.count) bytes"
        }
      return "\(frame.event) to \(frame.topic) \(payload)"
    }
  }

  struct State {
    var script: [RealtimeScript.Step]
    var afterwards: Afterwards
    var answersHeartbeats = true
    var answersCloses = true
    var isReachable = true
    var requests: [RealtimeTransportRequest] = []
    var sent: [Sent] = []
    /// Frames that have met no expectation yet.
    var unmet: [Sent] = []
    var connections: [ScriptedConnection] = []
    /// The newest connection that was one too many.
    var surplusConnection = 0
    /// The last expected frame, which `.reply` answers.
    var lastExpected: Sent?
    var problems: [String] = []
    /// A `.wait` is running, or the script has failed.
    var isHeld = false
    var mostAtOnce = 0
  }

  private let thread = SerialThread(name: "kizuna-script")
  let clock: VirtualClock
  let state: Locked<State>

  /// - Parameters:
  ///   - script: empty for a server that only cooperates.
  ///   - afterwards: what follows the script.
  public init(clock: VirtualClock, _ script: RealtimeScript = [], afterwards: Afterwards = .cooperate) {
    self.clock = clock
    state = Locked(State(script: script.steps, afterwards: afterwards))
    clock.enroll(thread)
  }

  deinit { thread.stop() }

  public var executor: any SerialExecutor { thread }

  public func connect(
    _ request: RealtimeTransportRequest, onEvent: @escaping @Sendable (RealtimeTransportEvent) -> Void
  ) -> any RealtimeTransportConnection {
    let connection = state.withLock { state -> ScriptedConnection in
      let connection = ScriptedConnection(
        number: state.requests.count + 1, request: request, transport: self, onEvent: onEvent)
      state.requests.append(request)
      state.connections.append(connection)
      state.mostAtOnce = max(state.mostAtOnce, state.connections.count { !$0.isOver })
      return connection
    }
    onThread { $0.advance() }
    return connection
  }

  // MARK: What happened

  /// Expectations that were not met, and frames that none was for when their connection was over, each with the frame
  /// expected, the frame sent and the virtual time.
  public var problems: [String] { state.withLock { $0.problems } }

  /// What is wrong now, at the end of a test: the problems, and the step that the script still waits at.
  ///
  ///     #expect(transport.complaints() == [])
  public func complaints() -> [String] { problems + (waiting.map { [$0] } ?? []) }

  /// The requests of all attempts, first one first.
  public var requests: [RealtimeTransportRequest] { state.withLock { $0.requests } }

  /// All frames from the client.
  public var sent: [Sent] { state.withLock { $0.sent } }

  /// Frames of one event, heartbeats included.
  public func sent(_ event: String) -> [PhoenixFrame] { sent.map(\.frame).filter { $0.event == event } }

  /// Steps of the script that are still to come.
  public var remainingSteps: Int { state.withLock { $0.script.count } }

  /// Connections and attempts that are not over.
  public var liveConnections: Int { state.withLock { $0.connections.count { !$0.isOver } } }

  /// The largest number of connections that existed at one time.
  public var mostConnectionsAtOnce: Int { state.withLock { $0.mostAtOnce } }

  // MARK: Acting by hand

  /// Sends a broadcast on the newest connection. The topic is named without prefix.
  public func broadcast(_ topic: String, event: String = "changed", payload: JSONValue = [:]) {
    onThread { $0.perform(.broadcast(topic: topic, event: event, payload: payload)) }
  }

  /// Sends a frame on the newest connection.
  public func send(_ frame: PhoenixFrame) { onThread { $0.perform(.send(frame)) } }

  /// Breaks the newest connection.
  public func cut() { onThread { $0.perform(.cut) } }

  /// Closes the newest connection as a server does.
  public func close(code: UInt16?, reason: String = "") { onThread { $0.perform(.close(code: code, reason: reason)) } }

  /// Without it every attempt fails at once, and the script waits.
  public func setReachable(_ isReachable: Bool) { state.withLock { $0.isReachable = isReachable } }

  /// A peer that answers no heartbeat.
  public func setAnswersHeartbeats(_ answers: Bool) { state.withLock { $0.answersHeartbeats = answers } }

  /// A dead peer: a close the client asks for takes until its deadline.
  public func setAnswersCloses(_ answers: Bool) { state.withLock { $0.answersCloses = answers } }

  func onThread(_ body: @escaping @Sendable (ScriptedTransport) -> Void) {
    thread.run { [weak self] in
      if let self { body(self) }
    }
  }
}
