import HostKit
import PhoenixChannels

/// One gateway that loses its server and gets it back: the real `ConnectionMachine` on virtual time, between a list of
/// what is going to happen and a server that accepts everything while it is there and refuses at once while it is not.
struct StormGateway {
  /// What one gateway lived through.
  struct History: Sendable, Hashable {
    /// When the attempts reached the server's address, from the start of the outage on, nanoseconds.
    var arrivals: [UInt64] = []
    /// When the topic was joined again, nanoseconds.
    var backAt: UInt64 = 0
  }

  private enum Happening {
    case timer(TimerToken)
    case transport(TransportID, TransportEvent)
  }

  private let outage: Outage
  /// Nanoseconds to the server and back.
  private let roundTrip: UInt64
  private let chance: () -> Double
  private var machine: ConnectionMachine
  private var agenda: [(at: UInt64, happening: Happening)] = []
  private var now: UInt64 = 0
  private var transport: TransportID?
  private var history = History()
  private var isBack = false

  /// - Parameter chance: what the machine draws its delays with.
  init(_ policy: ConnectionPolicy, _ outage: Outage, roundTrip: UInt64, chance: @escaping () -> Double) {
    self.outage = outage
    self.roundTrip = roundTrip
    self.chance = chance
    machine = ConnectionMachine(policy)
  }

  /// Runs from the first connection until the topic is joined after the outage.
  consuming func run(_ topic: ChannelTopic) -> History {
    handle(.start)
    handle(.credentials(.token("token")))
    handle(.subscribe(topic))
    var isCut = false
    while !isBack, let index = agenda.indices.min(by: { agenda[$0].at < agenda[$1].at }) {
      if !isCut, agenda[index].at >= outage.start {
        isCut = true
        now = outage.start
        // What was on its way is lost with the connection.
        agenda.removeAll { if case .transport = $0.happening { true } else { false } }
        if let transport { handle(.transport(transport, .closed(code: nil, reason: ""))) }
        continue
      }
      let next = agenda.remove(at: index)
      now = next.at
      switch next.happening {
      case .timer(let token): handle(.timer(token))
      case .transport(let id, let event): handle(.transport(id, event))
      }
    }
    return history
  }

  private mutating func handle(_ event: ConnectionEvent) {
    for effect in machine.handle(event, now: now, jitter: chance) { carryOut(effect) }
  }

  private mutating func carryOut(_ effect: ConnectionEffect) {
    switch effect {
    case .connect(let id):
      transport = id
      let arrival = now + roundTrip / 2
      if arrival >= outage.start { history.arrivals.append(arrival) }
      later(.transport(id, outage.covers(arrival) ? .failed("refused", isConfiguration: false) : .opened))
    case .close(let id, let code, _): later(.transport(id, .closed(code: code, reason: "")))
    case .send(let id, let frame): answer(frame, id)
    case .schedule(let token, let at): agenda.append((at, .timer(token)))
    case .cancel(let token):
      agenda.removeAll { if case .timer(token) = $0.happening { true } else { false } }
    case .ring(let ring):
      if ring.cause == .joined, now >= outage.end {
        history.backAt = now
        isBack = true
      }
    case .abandon, .requestCredentials, .stopped, .note: break
    }
  }

  private mutating func later(_ happening: Happening) { agenda.append((now + roundTrip, happening)) }

  private mutating func answer(_ frame: PhoenixFrame, _ id: TransportID) {
    guard frame.event == PhoenixFrame.Name.join || frame.event == PhoenixFrame.Name.heartbeat else { return }
    let reply = PhoenixFrame(
      joinRef: frame.joinRef, ref: frame.ref, topic: frame.topic, event: PhoenixFrame.Name.reply,
      ["status": "ok", "response": [:]])
    later(.transport(id, .frame(.success(reply), receivedAt: 0)))
  }
}
