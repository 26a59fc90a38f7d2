import HostKit
import PhoenixChannels

/// The state of a connection; times are on the scale of the clock the connection was given.
public typealias RealtimeStatus = ConnectionStatus

/// Tells a subscriber to pull: something changed, or may have changed while nobody listened.
public struct RealtimeRing: Sendable, Hashable {
  public typealias Cause = ConnectionRing.Cause

  /// Names without prefix, of those the subscriber asked for.
  public let topics: [String]
  public let cause: Cause
  /// `CLOCK_MONOTONIC` nanoseconds when the last byte of the frame behind it was received; 0 when there is none.
  public let receivedAt: UInt64
}

/// Keeps its topics joined until it is cancelled or released.
public final class RealtimeSubscription: Sendable {
  /// Names without prefix.
  public let topics: [String]
  private let listener: Listener
  private let onCancel: @Sendable () -> Void

  init(topics: [String], listener: Listener, onCancel: @escaping @Sendable () -> Void) {
    self.topics = topics
    self.listener = listener
    self.onCancel = onCancel
  }

  /// Ends it; no ring starts after this returns. The last subscriber of a topic leaves it. Idempotent.
  public func cancel() {
    if listener.end() { onCancel() }
  }

  deinit { cancel() }

  /// What the connection keeps of a subscription.
  final class Listener: Sendable {
    let topics: [ChannelTopic]
    private let onRing: Locked<(@Sendable (RealtimeRing) -> Void)?>

    init(topics: [ChannelTopic], onRing: @escaping @Sendable (RealtimeRing) -> Void) {
      self.topics = topics
      self.onRing = Locked(onRing)
    }

    func ring(_ topics: [ChannelTopic], _ cause: RealtimeRing.Cause, receivedAt: UInt64) {
      let heard = topics.filter { self.topics.contains($0) }
      guard !heard.isEmpty, let onRing = onRing.withLock({ $0 }) else { return }
      onRing(RealtimeRing(topics: heard.map(\.name), cause: cause, receivedAt: receivedAt))
    }

    /// - Returns: whether it was alive.
    func end() -> Bool {
      onRing.withLock { onRing in
        defer { onRing = nil }
        return onRing != nil
      }
    }
  }
}
