import KizunaSync

/// The host's wake-up from suspend, told to more than the scheduler: connections may be dead without knowing, and the
/// clock that counts a token's life may have stood still.
final class ResumeHints: KizunaSyncForegroundSource, Sendable {
  private let source = KizunaSyncResumeSource()
  private let onResume: @Sendable () -> Void

  init(_ onResume: @escaping @Sendable () -> Void) {
    self.onResume = onResume
  }

  func start(onForeground: @escaping @Sendable () -> Void) {
    source.start { [onResume] in
      onResume()
      onForeground()
    }
  }

  func stop() {
    source.stop()
  }
}
