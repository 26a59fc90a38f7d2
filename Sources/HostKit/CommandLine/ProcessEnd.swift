import Glibc

/// The end of a process that has lines to write, from any thread.
public enum ProcessEnd {
  private static let isEnding = Locked(false)

  /// Writes what waits for the readers of the output, within a moment, and ends the process. The first call decides how;
  /// a later one, from another thread, does not return either.
  ///
  /// The readers are waited for before the C library's `exit`, which takes libraries apart that other threads still use.
  public static func exit(_ code: ExitCode) -> Never {
    let isFirst = isEnding.withLock { isEnding -> Bool in
      defer { isEnding = true }
      return !isEnding
    }
    while !isFirst { pause() }
    StandardStreams.finishNow()
    Glibc.exit(code.rawValue)
  }
}
