import Glibc

/// Whole-line output to file descriptors, unbuffered, so that nothing is lost when a process is killed and lines of
/// several threads do not mix.
public enum StandardStreams {
  private static let lost = Locked<Int32?>(nil)

  /// Why a line for standard output was lost although somebody wants to read it, an `errno`: the disk is full, for one.
  /// Nil while nothing was lost, also when the reader of a pipe has gone away, as `head` does.
  public static var lostOutput: Int32? { lost.withLock { $0 } }

  /// One line on standard output. False when it was lost; see ``lostOutput``.
  @discardableResult
  public static func print(_ line: String) -> Bool {
    guard let reason = failure(ofWriting: line + "\n", to: STDOUT_FILENO) else { return true }
    if reason != EPIPE { lost.withLock { $0 = $0 ?? reason } }
    return false
  }

  /// One line on standard error.
  public static func printError(_ line: String) {
    write(line + "\n", to: STDERR_FILENO)
  }

  /// False when the descriptor took less than all of it.
  @discardableResult
  public static func write(_ text: String, to descriptor: Int32) -> Bool {
    failure(ofWriting: text, to: descriptor) == nil
  }

  /// - Returns: an `errno`, nil when everything was written.
  private static func failure(ofWriting text: String, to descriptor: Int32) -> Int32? {
    var text = text
    return text.withUTF8 { bytes in
      var done = 0
      while done < bytes.count {
        let count = Glibc.write(descriptor, bytes.baseAddress! + done, bytes.count - done)
        if count < 0, errno == EINTR { continue }
        if count < 0, errno == EAGAIN {
          // Somebody else made it non-blocking, as happens with a terminal that is shared.
          var waited = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          poll(&waited, 1, -1)
          continue
        }
        if count <= 0 { return count < 0 ? errno : EIO }
        done += count
      }
      return nil
    }
  }
}
