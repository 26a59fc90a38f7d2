/// The foreground port: says that somebody may be looking again. On a host without a screen: that it woke from suspend.
public protocol KizunaSyncForegroundSource: AnyObject {
  func start(onForeground: @escaping @Sendable () -> Void)
  func stop()
}

/// A source that reports the return from suspend. With such a one the scheduler also takes a timer of its own that fires
/// much too late for a return, because a process that was merely stopped sees no clock move.
protocol ResumeDetector: KizunaSyncForegroundSource {}
