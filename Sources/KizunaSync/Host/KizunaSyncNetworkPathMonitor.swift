import HostKit

/// Says whether this host has a way to the server, by its routing table. The scheduler's default on Linux.
///
/// Satisfied is everything but a clear "no": a server on this machine, a server whose address is not known yet, a host
/// whose routes cannot be read. While there is no way, the gate is opened for a moment every five minutes, so that one
/// run tests whether the table was wrong. Between changes of the routes nothing wakes up.
///
/// The address is the one the client's last answer came from (the proxy's, behind a proxy); a scheduler tells the
/// monitor which client it works for.
public final class KizunaSyncNetworkPathMonitor: KizunaSyncPathMonitor, @unchecked Sendable {  // all behind `state`
  static let letThroughInterval: UInt64 = .seconds(300)

  private struct State {
    var address: @Sendable () -> IPAddress? = { nil }
    var clock: any HostClock
    /// Grows with every start and cancel; what belongs to an older one is ignored.
    var generation: UInt64 = 0
    var isRunning = false
    var reported: Bool?
    var endWatch: (@Sendable () -> Void)?
    var endReports: (@Sendable () -> Void)?
    var letThrough: (any HostTimer)?
  }

  private let routes: any RouteSource
  private let state: Locked<State>
  private let reports = OrderedHandlers<Bool>()

  public convenience init() {
    self.init(routes: NetlinkRoutes.shared, clock: SystemClock.shared)
  }

  init(routes: any RouteSource, clock: any HostClock) {
    self.routes = routes
    state = Locked(State(clock: clock))
  }

  deinit {
    cancel()
  }

  /// What to look for, and by which clock. The scheduler calls it before `start`.
  func follow(_ address: @escaping @Sendable () -> IPAddress?, clock: any HostClock) {
    state.withLock { state in
      state.address = address
      state.clock = clock
    }
  }

  public func start(onSatisfied: @escaping @Sendable (Bool) -> Void) {
    cancel()
    let endReports = reports.add(first: nil, onSatisfied)
    let generation = state.withLock { state -> UInt64 in
      state.generation += 1
      state.isRunning = true
      state.endReports = endReports
      return state.generation
    }
    let endWatch = routes.watch { [weak self] in self?.look(generation) }
    let late = state.withLock { state -> Bool in
      guard state.generation == generation else { return true }
      state.endWatch = endWatch
      return false
    }
    if late { endWatch?() }
    look(generation)
  }

  public func cancel() {
    let (endWatch, endReports, timer) = state.withLock {
      state -> ((@Sendable () -> Void)?, (@Sendable () -> Void)?, (any HostTimer)?) in
      defer {
        state.generation += 1
        state.isRunning = false
        state.reported = nil
        state.endWatch = nil
        state.endReports = nil
        state.letThrough = nil
      }
      return (state.endWatch, state.endReports, state.letThrough)
    }
    endReports?()
    endWatch?()
    timer?.cancel()
  }

  /// Asks the routes and reports a change.
  private func look(_ generation: UInt64) {
    let address = state.withLock { $0.isRunning ? $0.address : nil }
    guard let address else { return }
    let satisfied = isSatisfied(address())
    let (changed, obsolete) = state.withLock { state -> (Bool, (any HostTimer)?) in
      guard state.generation == generation, state.reported != satisfied else { return (false, nil) }
      state.reported = satisfied
      reports.enqueue(satisfied)
      defer { state.letThrough = nil }
      return (true, state.letThrough)
    }
    obsolete?.cancel()
    reports.deliver()
    if changed, !satisfied { armLetThrough(generation) }
  }

  private func isSatisfied(_ address: IPAddress?) -> Bool {
    guard let address, !address.isLoopback else { return true }
    return routes.isReachable(address) ?? true
  }

  private func armLetThrough(_ generation: UInt64) {
    let clock = state.withLock { $0.clock }
    let timer = clock.schedule(after: Self.letThroughInterval) { [weak self] in self?.letOneThrough(generation) }
    let late = state.withLock { state -> Bool in
      guard state.generation == generation, state.reported == false else { return true }
      state.letThrough = timer
      return false
    }
    if late { timer.cancel() }
  }

  /// Opens the gate and shuts it again: the run that the opening wakes is not held back by the shutting.
  private func letOneThrough(_ generation: UInt64) {
    look(generation)
    let stillShut = state.withLock { state -> Bool in
      guard state.generation == generation, state.reported == false else { return false }
      state.letThrough = nil
      reports.enqueue(true)
      reports.enqueue(false)
      return true
    }
    guard stillShut else { return }
    reports.deliver()
    armLetThrough(generation)
  }
}
