/// How long the end of a process waits for the readers of its output. A value without I/O.
struct OutputPatience {
  /// The time of one look. Nobody who reads needs as long for what may wait.
  static let interval: UInt64 = .milliseconds(800)

  private var progress: Int

  /// - Parameter progress: how many lines were written so far.
  init(progress: Int) {
    self.progress = progress
  }

  /// Whether to wait for another interval, asked at the end of each.
  ///
  /// A result is waited for until somebody stops the process: its reader may be a pager. Events are waited for while
  /// their reader takes some.
  mutating func goesOn(progress now: Int, holdsResults: Bool, isStopping: Bool) -> Bool {
    defer { progress = now }
    return !isStopping && (holdsResults || now > progress)
  }
}
