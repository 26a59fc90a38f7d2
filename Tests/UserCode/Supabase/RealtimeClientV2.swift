import Foundation

public typealias JSONObject = [String: String]

public final class RealtimeClientV2: Sendable {
  private let channels = Guarded<[String: RealtimeChannelV2]>([:])

  public func channel(_ topic: String) -> RealtimeChannelV2 {
    channels.withLock { channels in
      let channel = channels[topic] ?? RealtimeChannelV2()
      channels[topic] = channel
      return channel
    }
  }

  /// For tests: broadcasts to whoever listens to the topic.
  public func broadcast(_ event: String, topic: String) {
    channel(topic).broadcast(event)
  }

  /// For tests: the topics that are joined.
  public var joined: [String] {
    channels.withLock { $0.filter { $0.value.isJoined }.keys.sorted() }
  }
}

public final class RealtimeChannelV2: Sendable {
  private struct State {
    var joined = false
    var listeners: [(event: String, continuation: AsyncStream<JSONObject>.Continuation)] = []
  }

  private let state = Guarded(State())

  public func broadcastStream(event: String) -> AsyncStream<JSONObject> {
    let (stream, continuation) = AsyncStream<JSONObject>.makeStream()
    state.withLock { $0.listeners.append((event, continuation)) }
    return stream
  }

  public func subscribe() async {
    state.withLock { $0.joined = true }
  }

  public func unsubscribe() async {
    let listeners = state.withLock { state in
      defer { state = State() }
      return state.listeners
    }
    for listener in listeners { listener.continuation.finish() }
  }

  var isJoined: Bool { state.withLock { $0.joined && !$0.listeners.isEmpty } }

  func broadcast(_ event: String) {
    let listeners = state.withLock { $0.joined ? $0.listeners : [] }
    for listener in listeners where listener.event == event { listener.continuation.yield(["t": "todos"]) }
  }
}
