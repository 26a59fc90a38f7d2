import Glibc
import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

@Suite struct EventHubTests {
  let hub = EventHub()

  /// Returns when everything emitted before has been delivered.
  func drain() async {
    let end = Locked<(@Sendable () -> Void)?>(nil)
    await withCheckedContinuation { continuation in
      let mine = hub.subscribe { event in
        guard event == .checkpointExpired else { return }
        // Only the first one counts, even if two drains overlap.
        let first = end.withLock { end -> (@Sendable () -> Void)? in
          defer { end = nil }
          return end
        }
        guard let first else { return }
        first()
        continuation.resume()
      }
      end.withLock { $0 = mine }
      hub.emit(.checkpointExpired)
    }
  }

  @Test func eventsComeInOrderOnOneThreadThatIsNotTheCallers() async {
    let seen = Locked<[UInt32]>([])
    let threads = Locked<Set<UInt>>([])
    _ = hub.subscribe { event in
      guard case .queueDepth(let depth) = event else { return }
      seen.withLock { $0.append(depth) }
      _ = threads.withLock { $0.insert(UInt(pthread_self())) }
    }
    for depth in 0..<500 { hub.emit(.queueDepth(depth: UInt32(depth))) }
    await drain()
    #expect(seen.withLock { $0 } == Array(0..<500))
    #expect(threads.withLock { $0.count } == 1)
    #expect(!threads.withLock { $0.contains(UInt(pthread_self())) })
  }

  @Test func aHandlerHearsOnlyWhatIsEmittedWhileItIsSubscribed() async {
    let heard = Locked(0)
    let end = hub.subscribe { if $0 == .localChanged { heard.withLock { $0 += 1 } } }
    hub.emit(.localChanged)
    await drain()
    end()
    end()
    hub.emit(.localChanged)
    await drain()
    #expect(heard.withLock { $0 } == 1)
  }

  @Test func aHandlerMayEndItselfAndOthersAndSubscribe() async {
    let heard = Locked<[String]>([])
    let ends = Locked<[@Sendable () -> Void]>([])
    let first = hub.subscribe { [hub] event in
      guard event == .localChanged else { return }
      heard.withLock { $0.append("first") }
      for end in ends.withLock({ $0 }) { end() }
      _ = hub.subscribe { if $0 == .localChanged { heard.withLock { $0.append("third") } } }
    }
    let second = hub.subscribe { if $0 == .localChanged { heard.withLock { $0.append("second") } } }
    ends.withLock { $0 = [first, second] }
    hub.emit(.localChanged)
    await drain()
    #expect(heard.withLock { $0 } == ["first"])
    hub.emit(.localChanged)
    await drain()
    #expect(heard.withLock { $0 } == ["first", "third"])
  }

  @Test func shuttingDownEndsEverySubscription() async {
    let heard = Locked(0)
    _ = hub.subscribe { _ in heard.withLock { $0 += 1 } }
    await hub.shutDown()
    hub.emit(.localChanged)
    await drain()
    #expect(heard.withLock { $0 } == 0)
  }
}
