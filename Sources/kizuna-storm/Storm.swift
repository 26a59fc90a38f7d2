import HostKit
import PhoenixChannels

/// Many gateways that lose the same server at the same moment, and how they come back.
///
/// Gateways know nothing of each other, so each is simulated by itself and only their arrivals are put together.
struct Storm: Sendable {
  var gateways = 10_000
  var seed: UInt64 = 1
  var policy = ConnectionPolicy()
  /// How a machine draws; tests take the chance away.
  var draw: @Sendable (inout SeededRandom) -> Double = { $0.unit() }

  /// Width of the bins, nanoseconds.
  static let bin: UInt64 = .seconds(3)

  func run(_ outage: Outage) async throws -> StormResult {
    let topic = try ChannelTopic("kizunasync:todos")
    let share = 250
    let histories = await withTaskGroup(of: [StormGateway.History].self) { group in
      for first in stride(from: 0, to: gateways, by: share) {
        group.addTask { (first..<min(first + share, gateways)).map { history(of: $0, outage, topic) } }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    return StormResult(histories, outage, cap: policy.reconnect.cap)
  }

  private func history(of number: Int, _ outage: Outage, _ topic: ChannelTopic) -> StormGateway.History {
    var random = SeededRandom(seed &* 1_000_003 &+ UInt64(number))
    // From the same data centre to the other side of the world.
    let roundTrip = UInt64.milliseconds(5 + 295 * random.unit())
    return StormGateway(policy, outage, roundTrip: roundTrip) { draw(&random) }.run(topic)
  }
}
