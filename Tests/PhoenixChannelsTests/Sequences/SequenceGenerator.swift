import HostKit
import PhoenixChannels

/// Makes random histories. Knows nothing of the machine's state: what is out of place is part of the point.
struct SequenceGenerator {
  private var random: SeededRandom
  private var tokens = 0

  private init(seed: UInt64) { random = SeededRandom(seed) }

  /// The history of a seed, of at most 200 steps.
  static func sequence(seed: UInt64) -> MachineSequence {
    var generator = SequenceGenerator(seed: seed)
    let length = 20 + generator.below(181)
    var sequence = MachineSequence(
      usesCredentials: generator.below(2) == 0, isVersion1: generator.below(4) == 0, chance: seed ^ 0xABCD, steps: [])
    switch generator.below(16) {
    case 0...3: break
    case 4: sequence.steps = generator.refusedJoins()
    default: sequence.steps = generator.comeUp()
    }
    while sequence.steps.count < length { sequence.steps += generator.next() }
    sequence.steps = Array(sequence.steps.prefix(200))
    return sequence
  }

  private static let topics = ["a", "b", "c", "d"]

  static let reasons = [
    "Unauthorized: You do not have permissions to read from this Channel topic: x",
    "InvalidJWTToken: Token has expired 3 seconds ago", "JwtSignatureError: " + SequenceRun.token(1),
    "ChannelRateLimitReached: Too many channels", "ConnectionRateLimitReached: Too many connected users",
    "ClientJoinRateLimitReached: Too many joins per second", "UnableToConnectToProject: no",
    "DatabaseLackOfConnections: none", "RealtimeRestarting: Realtime is restarting, please standby",
    "PrivateOnly: This project only allows private channels", "TenantNotFound: no",
    "RealtimeDisabledForTenant: Realtime disabled for this tenant", "", "Unknown Error on Channel",
  ]
  private static let messages = [
    "Token has expired 0 seconds ago", "Too many messages per second", "odd", "Replication connection established",
    "Server requested disconnect", "You no longer have permission to read from this Channel topic: x",
  ]
  private static let events = ["broadcast", "presence_state", "presence_diff", "postgres_changes", "later"]

  private mutating func below(_ bound: UInt64) -> Int { Int(random.next() % bound) }

  private mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(UInt64(elements.count))] }

  private var topic: String {
    mutating get { pick(Self.topics) }
  }

  /// Mostly the right one.
  private var ref: MachineStep.Ref {
    mutating get { below(2) == 0 ? .current : pick(MachineStep.Ref.allCases) }
  }

  /// Everybody does what is needed.
  private mutating func comeUp(topics count: Int? = nil, accepting: Bool = true) -> [MachineStep] {
    tokens += 1
    let topics = Self.topics.prefix(count ?? 1 + below(4))
    let accepted =
      accepting && below(3) > 0 ? topics.map { MachineStep.answer($0, .current, status: "ok", reason: nil) } : []
    return topics.map { .subscribe($0) } + [.start, .hint(.pathSatisfied), .token(tokens), .advance(1.5), .opened]
      + accepted + accepted
  }

  private mutating func next() -> [MachineStep] {
    switch below(50) {
    case 0: return [.start]
    case 1: return below(4) == 0 ? [.stop] : []
    case 2...4: return [.subscribe(topic)]
    case 5: return [.unsubscribe(topic)]
    case 6, 7: return [.hint(pick(ConnectionHint.allCases))]
    case 8, 9: return [credentials()]
    case 10...13: return [.opened]
    case 14: return [.failed(isConfiguration: below(8) == 0)]
    case 15: return [.closed(pick([nil, 1000, 1001, 1002, 1006, 1009, 1011, 1012, 4001]))]
    case 16: return [refusal()]
    case 17: return [.late(pick([.opened, .closed, .failed, .refused, .pong, .answer(topic)]))]
    case 18...23: return [.answer(topic, .current, status: "ok", reason: nil)]
    case 24, 25: return [.answer(topic, ref, status: pick(["ok", "error", "?"]), reason: pick(Self.reasons))]
    case 26: return [.answer(topic, .current, status: "error", reason: pick(Self.reasons))]
    case 27: return [.close(topic, ref)]
    case 28: return [.error(topic, ref)]
    case 29:
      return [
        .system(
          topic, ref, status: pick(["ok", "error"]), extension: pick(["system", "postgres_changes"]),
          message: pick(Self.messages))
      ]
    case 30: return [.event(pick(Self.events), topic, below(2) == 0 ? .none : ref)]
    case 31...33: return [.heartbeatAnswer(below(3) == 0 ? ref : .current)]
    case 34: return [pick([.undecodable, .oversized, .pong])]
    case 35: return [.staleTimer(below(64))]
    case 36: return [.sleep(Double(below(100)))]
    case 37: return [.advance(Double(below(400)))]
    case 38, 39: return [.nextTimer]
    case 40: return stretch()
    case 41...45: return comeUp()
    default: return [.advance((random.unit() * 80).rounded() / 10)]
    }
  }

  private mutating func credentials() -> MachineStep {
    switch below(10) {
    case 0: return .withdrawn
    case 1: return .unavailable
    case 2: return .token(max(1, tokens))
    case 3: return below(4) == 0 ? .emptyToken : .unavailable
    case 4: return .ending
    default:
      tokens += 1
      return .token(tokens)
    }
  }

  private mutating func refusal() -> MachineStep {
    .refused(
      pick([400, 401, 401, 403, 404, 414, 429, 500, 502, 302]), retryAfter: below(4) == 0 ? below(100_000) : nil,
      body: pick([nil, #"{"error":"Token has expired"}"#, "<html>"]))
  }

  /// The same thing many times over, which chance alone would not bring about.
  private mutating func stretch() -> [MachineStep] {
    switch below(6) {
    // A server that is away: the delays grow to the cap.
    case 0: return Array(repeating: [.nextTimer, .failed(isConfiguration: false)], count: 12).flatMap { $0 }
    // One that flaps: the budget is spent.
    case 1: return Array(repeating: [.opened, .closed(1012), .hint(.manual), .advance(2)], count: 20).flatMap { $0 }
    // A topic that cannot be joined.
    case 2: return refusedJoins()
    // All is well for long enough.
    case 3: return comeUp() + Array(repeating: [.advance(9), .heartbeatAnswer(.current)], count: 5).flatMap { $0 }
    // Joins that are never answered.
    case 4: return comeUp(accepting: false) + Array(repeating: .advance(26), count: 4)
    // A token that is refused whatever happens.
    default:
      tokens += 1
      let refused = MachineStep.answer("a", .current, status: "error", reason: Self.reasons[1])
      return comeUp(accepting: false)
        + [refused, .unavailable, .nextTimer, .unavailable, .nextTimer, .token(tokens), refused, .advance(600)]
    }
  }

  /// One topic is refused for so long that the socket is replaced.
  private mutating func refusedJoins() -> [MachineStep] {
    let refused = MachineStep.answer("a", .current, status: "error", reason: "UnableToConnectToProject: no")
    return comeUp(topics: 1, accepting: false)
      + Array(repeating: [refused, .advance(9), .heartbeatAnswer(.current)], count: 60).flatMap { $0 }
  }
}
