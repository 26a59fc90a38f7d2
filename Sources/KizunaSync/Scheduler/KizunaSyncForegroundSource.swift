/// The foreground port: says that somebody may be looking again. On a host without a screen: that it woke from suspend.
public protocol KizunaSyncForegroundSource: AnyObject {
  func start(onForeground: @escaping @Sendable () -> Void)
  func stop()
}
