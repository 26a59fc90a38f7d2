/// What a scheduler's `start` armed and its `stop` has to end.
struct SchedulerSources: @unchecked Sendable {  // the ports are only ever started and ended, and may be from any thread
  var path: (any KizunaSyncPathMonitor)?
  var foreground: (any KizunaSyncForegroundSource)?
  var realtime: (any KizunaSyncRealtimeSubscription)?
  var localWrites: (@Sendable () -> Void)?

  mutating func add(_ other: SchedulerSources) {
    path = other.path ?? path
    foreground = other.foreground ?? foreground
    realtime = other.realtime ?? realtime
    localWrites = other.localWrites ?? localWrites
  }

  func end() {
    path?.cancel()
    foreground?.stop()
    realtime?.cancel()
    localWrites?()
  }
}
