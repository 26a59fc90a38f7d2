import HostKit
import KizunaSync
import PhoenixChannels
import SupabaseRealtime

/// The doorbell of a scheduler over a Realtime connection: every broadcast on a topic rings, and so does every join that
/// succeeds, because what was sent while away is gone. What a broadcast holds is not looked at.
///
/// Several schedulers may share one connection, each with a doorbell of its own; a topic is joined once for all of them.
/// Whether channels are private, which Kizuna's are, is a setting of the connection (`policy.privateChannels`).
public final class RealtimeDoorbell: KizunaSyncRealtimeWakeup, Sendable {
  public let connection: RealtimeConnection
  private let log: HostLog
  private let onRing: (@Sendable (RealtimeRing) -> Void)?

  /// - Parameters:
  ///   - connection: started by the first subscription; whoever made it stops it.
  ///   - onRing: sees each ring before the scheduler does, on the transport's thread; must be short.
  public init(
    _ connection: RealtimeConnection, log: HostLog = .none, onRing: (@Sendable (RealtimeRing) -> Void)? = nil
  ) {
    self.connection = connection
    self.log = log
    self.onRing = onRing
  }

  /// Joins the topics and rings `onWake` until the subscription is cancelled. `onWake` is called on the transport's
  /// thread and must not block.
  ///
  /// A name that cannot be a topic is reported to the log and left out; the scheduler polls, so nothing is lost.
  public func subscribe(
    topics: [String], onWake: @escaping @Sendable () -> Void
  ) -> KizunaSyncRealtimeSubscription {
    let usable = topics.filter { topic in
      do throws(ChannelTopicError) {
        _ = try ChannelTopic(topic)
        return true
      } catch {
        log.error("doorbell.topic_unusable", ["reason": .string(error.description)])
        return false
      }
    }
    connection.start()
    let onRing = onRing
    // Every name was checked above, so nothing is thrown.
    let subscription = try? connection.subscribe(topics: usable) { ring in
      onRing?(ring)
      onWake()
    }
    return Subscription(subscription)
  }

  private final class Subscription: KizunaSyncRealtimeSubscription {
    private let inner: RealtimeSubscription?

    init(_ inner: RealtimeSubscription?) {
      self.inner = inner
    }

    func cancel() {
      inner?.cancel()
    }
  }
}
