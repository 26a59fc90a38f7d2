import HostKit
import KizunaSync

/// A doorbell that a test rings.
public final class ManualDoorbell: KizunaSyncRealtimeWakeup, Sendable {
  private struct State {
    var subscriptions: [Subscription] = []
    var failing = 0
    var lost = 0
    var rings = 0
  }

  private let state = Locked(State())

  public init() {}

  /// One call of `subscribe`.
  public final class Subscription: KizunaSyncRealtimeSubscription {
    public let topics: [String]
    private let onWake: Locked<(@Sendable () -> Void)?>

    fileprivate init(topics: [String], onWake: (@Sendable () -> Void)?) {
      self.topics = topics
      self.onWake = Locked(onWake)
    }

    /// False once cancelled, and from the start when the subscription failed.
    public var isActive: Bool { onWake.withLock { $0 != nil } }

    public func cancel() { onWake.withLock { $0 = nil } }

    fileprivate func wake() -> Bool {
      let onWake = onWake.withLock { $0 }
      onWake?()
      return onWake != nil
    }
  }

  public func subscribe(
    topics: [String], onWake: @escaping @Sendable () -> Void
  ) -> any KizunaSyncRealtimeSubscription {
    state.withLock { state in
      let fails = state.failing > 0
      if fails { state.failing -= 1 }
      let subscription = Subscription(topics: topics, onWake: fails ? nil : onWake)
      state.subscriptions.append(subscription)
      return subscription
    }
  }

  /// Every subscription so far, cancelled and failed ones included.
  public var subscriptions: [Subscription] { state.withLock { $0.subscriptions } }

  /// Rings the subscribers of a table, or of everything.
  ///
  /// - Returns: how many heard it.
  @discardableResult
  public func ring(table: String? = nil) -> Int {
    let listeners = state.withLock { state -> [Subscription] in
      state.rings += 1
      if state.lost > 0 {
        state.lost -= 1
        return []
      }
      return state.subscriptions.filter { subscription in
        table.map { subscription.topics.contains("kizunasync:\($0)") } ?? true
      }
    }
    return listeners.count { $0.wake() }
  }

  /// Rings so far, lost ones included.
  public var ringCount: Int { state.withLock { $0.rings } }

  /// The next `count` subscriptions never hear anything, as topics that are refused.
  public func failNext(_ count: Int = 1) {
    state.withLock { $0.failing += count }
  }

  /// The next `count` rings reach nobody.
  public func loseNext(_ count: Int = 1) {
    state.withLock { $0.lost += count }
  }

  /// Rings once per changed table after every commit of the server, as the service's trigger does.
  public func follow(_ server: SyncServer) async {
    await server.onCommit { [weak self] commit in
      for table in commit.tables { self?.ring(table: table) }
    }
  }
}
