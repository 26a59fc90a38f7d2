import Glibc
import HostKit

/// A TCP proxy on the loopback interface whose connections break as a test says, while it runs.
///
/// Put it between a client and a server and change its ``rules``, or end connections by ``cut(_:)`` and
/// ``cutNext(from:afterBytes:_:)``. It knows nothing of what goes through it, so it serves WebSockets, HTTP and TLS alike.
///
/// ```swift
/// let proxy = try FaultProxy(to: server.port)
/// let gateway = try Gateway(configuration("http://127.0.0.1:\(proxy.port)"))
/// …
/// proxy.change { $0.fromServer.flow = .swallowed }       // the peer vanishes without a word
/// await proxy.wait { $0.swallowedFromServer > 0 }        // something was lost
/// proxy.change { $0.fromServer.flow = .passed }          // whoever lost bytes is reset, new connections work
/// await proxy.stop()
/// ```
///
/// Every member may be used from any thread. A change holds for every byte that is moved after the call has returned. The
/// bytes are moved by one thread of the proxy's own, which sleeps while there is nothing to do; it ends with ``stop()`` or
/// with the last reference.
public final class FaultProxy: Sendable {
  /// Where clients connect to, on 127.0.0.1.
  public let port: UInt16
  private let core: Locked<FaultProxyCore>
  private let lastWatcher = Locked<UInt64>(0)

  /// - Parameters:
  ///   - target: the server's port on 127.0.0.1.
  ///   - port: where clients connect to; 0 lets the system choose.
  public init(to target: UInt16, port: UInt16 = 0) throws(FaultProxyError) {
    let core = try FaultProxyCore(port: port, target: target)
    self.port = core.port
    let shared = Locked(core)
    self.core = shared
    HostThread.detach(name: "fault-proxy") { Self.run(shared) }
  }

  deinit {
    core.withLock { $0.stop() }
  }

  // MARK: Faults

  /// What becomes of connections and bytes.
  public var rules: FaultRules {
    get { core.withLock { $0.rules } }
    set { change { $0 = newValue } }
  }

  public func change(_ change: (inout FaultRules) -> Void) {
    core.withLock { core in
      var rules = core.rules
      change(&rules)
      core.set(rules)
      core.wake()
    }
  }

  /// Connects clients that come from now on to another port.
  public func redirect(to target: UInt16) {
    core.withLock { $0.target = target }
  }

  /// Ends every connection.
  public func cut(_ ending: FaultEnding = .reset) {
    core.withLock { core in
      core.cutAll(ending)
      core.wake()
    }
  }

  /// The server's end of every connection is gone without a word: the server sees a reset, the client sees nothing, now or
  /// later, whatever the rules say. New connections are not concerned.
  public func vanish() {
    core.withLock { core in
      core.vanishAll()
      core.wake()
    }
  }

  /// Passes so many more bytes of one side on, counted over all connections, and then ends the connection that carried the
  /// last of them: inside a frame, inside an answer, inside a handshake. It happens once; another call takes its place.
  public func cutNext(from origin: FaultOrigin, afterBytes bytes: Int, _ ending: FaultEnding = .reset) {
    core.withLock { core in
      core.cut = FaultCut(origin: origin, bytes: max(bytes, 0), ending: ending)
      core.wake()
    }
  }

  // MARK: What happened

  public var counts: FaultCounts { core.withLock { $0.counts } }

  /// Waits until the counts are as wanted.
  ///
  /// - Parameter condition: called on any thread, with the proxy's lock held: it must be short and must not call the proxy.
  /// - Returns: false when the proxy was stopped or the task cancelled before that.
  @discardableResult
  public func wait(until condition: @escaping @Sendable (FaultCounts) -> Bool) async -> Bool {
    let id = nextWatcher()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        watch(id, continuation, condition)
        if Task.isCancelled { core.withLock { $0.removeWatcher(id) }?.resume(returning: false) }
      }
    } onCancel: {
      core.withLock { $0.removeWatcher(id) }?.resume(returning: false)
    }
  }

  private func nextWatcher() -> UInt64 {
    lastWatcher.withLock { last in
      last += 1
      return last
    }
  }

  private func watch(
    _ id: UInt64, _ continuation: CheckedContinuation<Bool, Never>,
    _ condition: @escaping @Sendable (FaultCounts) -> Bool
  ) {
    let watcher = FaultProxyCore.Watcher(condition: condition, continuation: continuation)
    let known = core.withLock { core -> Bool? in core.add(watcher, id) ? nil : condition(core.counts) }
    if let known { continuation.resume(returning: known) }
  }

  /// Resets all connections and frees the port. Idempotent.
  public func stop() async {
    core.withLock { $0.stop() }
    let id = nextWatcher()
    _ = await withCheckedContinuation { watch(id, $0) { _ in false } }
  }

  // MARK: The thread

  private static func run(_ core: Locked<FaultProxyCore>) {
    while true {
      guard var wanted = core.withLock({ $0.interests(now: SystemClock.monotonic) }) else { break }
      _ = poll(&wanted.entries, nfds_t(wanted.entries.count), wanted.timeout)
      let settled = core.withLock { core in
        core.work(now: SystemClock.monotonic)
        return core.takeSettled()
      }
      for watcher in settled { watcher.continuation.resume(returning: watcher.holds) }
    }
  }
}

/// A proxy could not be set up: the port is taken, or this process has no descriptor left.
public struct FaultProxyError: Error, Sendable, Hashable, CustomStringConvertible {
  public let port: UInt16
  /// `errno`.
  public let code: Int32

  public var description: String {
    "The fault proxy cannot listen on 127.0.0.1:\(port): \(String(cString: strerror(code))). Port 0 takes a free one."
  }
}
