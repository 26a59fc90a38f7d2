import CLinux
import Glibc
import HostKit

/// Everything a proxy knows. It lives behind the proxy's lock; none of its calls blocks.
struct FaultProxyCore {
  struct Watcher: Sendable {
    let condition: @Sendable (FaultCounts) -> Bool
    let continuation: CheckedContinuation<Bool, Never>
  }

  let port: UInt16
  private(set) var rules = FaultRules()
  var target: UInt16
  var cut: FaultCut?
  private(set) var counts = FaultCounts()
  private(set) var isStopped = false
  private var watchers: [UInt64: Watcher] = [:]
  /// Bound and never listening, so that nobody else gets the port while connections are refused.
  private var holder: Int32
  private var listener: Int32?
  private var alarm: Int32?
  private var links: [FaultLink] = []

  init(port: UInt16, target: UInt16) throws(FaultProxyError) {
    self.target = target
    (holder, self.port) = try FaultSocket.bound(to: port)
    do throws(FaultProxyError) {
      listener = try FaultSocket.listening(on: self.port)
    } catch {
      FaultSocket.close(holder)
      throw error
    }
    alarm = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
  }

  // MARK: Changes

  mutating func set(_ rules: FaultRules) {
    self.rules = rules
    if rules.admission == .refused {
      // What waits there is reset.
      listener.map(FaultSocket.endListening)
      listener = nil
    } else if listener == nil, !isStopped {
      listener = try? FaultSocket.listening(on: port)
    }
  }

  mutating func cutAll(_ ending: FaultEnding) {
    for index in links.indices where links[index].isOpen {
      links[index].finish(ending)
      counts.cut += 1
    }
    tidy()
  }

  mutating func vanishAll() {
    for index in links.indices { links[index].vanish() }
  }

  /// Makes the thread look at what has changed.
  func wake() {
    guard let alarm else { return }
    var one: UInt64 = 1
    _ = write(alarm, &one, 8)
  }

  // MARK: The thread

  /// What the thread has to wait for, and how many milliseconds at most; below zero is for ever. Nil ends the thread.
  func interests(now: UInt64) -> (entries: [pollfd], timeout: Int32)? {
    guard let alarm else { return nil }
    var entries = [pollfd(fd: alarm, events: Int16(POLLIN), revents: 0)]
    if let listener, rules.admission != .held {
      entries.append(pollfd(fd: listener, events: Int16(POLLIN), revents: 0))
    }
    for link in links { link.addInterests(rules, now: now, to: &entries) }
    guard let due = links.compactMap({ $0.nextDue(rules) }).filter({ $0 > now }).min() else { return (entries, -1) }
    return (entries, Int32(clamping: (due - now + 999_999) / 1_000_000))
  }

  mutating func work(now: UInt64) {
    if let alarm {
      var sink: UInt64 = 0
      _ = read(alarm, &sink, 8)
    }
    if isStopped { return end() }
    admit()
    for index in links.indices {
      links[index].work(rules, now: now, cut: &cut, counts: &counts)
    }
    tidy()
  }

  private mutating func admit() {
    guard let listener, rules.admission != .held else { return }
    while let client = FaultSocket.accept(listener) {
      counts.accepted += 1
      switch rules.admission {
      case .forwarded:
        if let server = FaultSocket.connect(to: target) {
          links.append(FaultLink(client: client, server: server))
        } else {
          counts.unreachable += 1
          FaultSocket.reset(client)
        }
      case .unanswered: links.append(FaultLink(client: client, server: nil))
      case .reset, .refused, .held: FaultSocket.reset(client)
      }
    }
  }

  private mutating func tidy() {
    links.removeAll(where: \.isOver)
    counts.open = links.count(where: \.isOpen)
  }

  // MARK: Watching

  /// - Returns: false when the answer is known already.
  mutating func add(_ watcher: Watcher, _ id: UInt64) -> Bool {
    guard alarm != nil, !watcher.condition(counts) else { return false }
    watchers[id] = watcher
    return true
  }

  mutating func removeWatcher(_ id: UInt64) -> CheckedContinuation<Bool, Never>? {
    watchers.removeValue(forKey: id)?.continuation
  }

  /// Those whose condition holds now; all of them once the thread has ended.
  mutating func takeSettled() -> [(continuation: CheckedContinuation<Bool, Never>, holds: Bool)] {
    watchers.compactMap { id, watcher in
      let holds = watcher.condition(counts)
      guard holds || alarm == nil else { return nil }
      watchers[id] = nil
      return (watcher.continuation, holds)
    }
  }

  // MARK: Ending

  mutating func stop() {
    isStopped = true
    wake()
  }

  private mutating func end() {
    for index in links.indices { links[index].finish(.reset) }
    tidy()
    listener.map(FaultSocket.endListening)
    listener = nil
    FaultSocket.close(holder)
    alarm.map(FaultSocket.close)
    alarm = nil
  }
}
