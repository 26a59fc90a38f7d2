import Glibc

/// Whole-line output to file descriptors, unbuffered, so that nothing is lost when a process is killed and lines of
/// several threads do not mix.
public enum StandardStreams {
  /// One line on standard output. False when nobody reads it any more.
  @discardableResult
  public static func print(_ line: String) -> Bool {
    write(line + "\n", to: STDOUT_FILENO)
  }

  /// One line on standard error.
  public static func printError(_ line: String) {
    write(line + "\n", to: STDERR_FILENO)
  }

  /// False when the descriptor took less than all of it.
  @discardableResult
  public static func write(_ text: String, to descriptor: Int32) -> Bool {
    var text = text
    return text.withUTF8 { bytes in
      var done = 0
      while done < bytes.count {
        let count = Glibc.write(descriptor, bytes.baseAddress! + done, bytes.count - done)
        if count < 0, errno == EINTR { continue }
        if count <= 0 { return false }
        done += count
      }
      return true
    }
  }
}
