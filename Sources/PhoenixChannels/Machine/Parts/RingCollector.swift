/// Joined topics whose subscribers have not been rung yet.
struct RingCollector: Sendable {
  private(set) var topics: [ChannelTopic] = []
  private(set) var receivedAt: UInt64 = 0

  var isEmpty: Bool { topics.isEmpty }

  mutating func add(_ topic: ChannelTopic, receivedAt: UInt64) {
    if !topics.contains(topic) { topics.append(topic) }
    self.receivedAt = receivedAt
  }

  mutating func remove(_ topic: ChannelTopic) { topics.removeAll { $0 == topic } }

  mutating func take() -> ConnectionRing? {
    guard !topics.isEmpty else { return nil }
    defer { self = RingCollector() }
    return ConnectionRing(topics: topics, cause: .joined, receivedAt: receivedAt)
  }
}
