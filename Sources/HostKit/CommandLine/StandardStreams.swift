import Glibc

/// Whole-line output to standard output and standard error.
///
/// Nobody who writes waits: each stream has a queue and a thread (``OutputQueue``), so that a reader that stalls stops
/// neither an event loop nor the end of the process. Lines of several threads do not mix, and those of one stream keep
/// their order. What waits at the end is still written by ``ProcessEnd``, within a second if the reader stalls.
public enum StandardStreams {
  static let output = OutputQueue(descriptor: STDOUT_FILENO, name: "kizuna-stdout")
  static let errors = OutputQueue(descriptor: STDERR_FILENO, name: "kizuna-stderr")

  private static let isStopping = Locked(false)
  /// The readers were waited for, and did not take everything.
  private static let isGivenUp = Locked(false)

  /// Why a line for standard output was lost although somebody wants to read it, an `errno`: the disk is full, for one.
  /// Nil while nothing was lost, also when the reader of a pipe has gone away, as `head` does.
  public static var lostOutput: Int32? { output.loss }

  /// Calls `handler` for each line of standard output that cannot be written, also because its reader has gone away.
  /// It runs on the thread that writes, must be short, and replaces the handler before it.
  public static func onLostOutput(_ handler: @escaping @Sendable () -> Void) {
    output.onLoss(handler)
  }

  /// A result on standard output: one line, or several. It is never dropped.
  public static func print(_ line: String) {
    output.add(result: line + "\n")
  }

  /// One of a stream of lines on standard output that never ends. While too much waits for the reader, the oldest lines
  /// are dropped.
  /// - Parameter notice: the line that stands in the place of those that were dropped, if this is the last of them.
  public static func printEvent(_ line: String, orTell notice: @escaping @Sendable (_ dropped: Int) -> String) {
    output.add(event: line + "\n") { notice($0) + "\n" }
  }

  /// One line on standard error. While too much waits for the reader, the oldest lines are dropped.
  public static func printError(_ line: String) {
    errors.add(event: line + "\n") { "\(Counted.of($0, "line")) dropped, since nobody read them\n" }
  }

  /// Writes to a descriptor of the caller's, and waits until it takes everything.
  /// - Returns: false when the descriptor took less than all of it.
  @discardableResult
  public static func write(_ text: String, to descriptor: Int32) -> Bool {
    failure(ofWriting: text, to: descriptor) == nil
  }

  /// From now on the readers are waited for only a moment: the process was told to stop.
  static func hurry() {
    isStopping.withLock { $0 = true }
  }

  /// Waits until everything is written. A reader of events that stalls is given up after a moment; a result is waited
  /// for until the process is told to stop.
  /// - Returns: whether all results were written, or lost for a reason that ``lostOutput`` tells.
  static func finish() async -> Bool {
    let idle = Locked(false)
    await withCheckedContinuation { continuation in
      let isOver = Locked(false)
      let end = { @Sendable () -> Void in
        let isFirst = isOver.withLock { isOver -> Bool in
          defer { isOver = true }
          return !isOver
        }
        if isFirst { continuation.resume() }
      }
      whenIdle {
        idle.withLock { $0 = true }
        end()
      }
      if !idle.withLock({ $0 }) { wait(OutputPatience(progress: progress), until: isOver, end) }
    }
    if idle.withLock({ $0 }) { return true }
    isGivenUp.withLock { $0 = true }
    return !output.holdsResults
  }

  private static func wait(
    _ patience: OutputPatience, until isOver: Locked<Bool>, _ end: @escaping @Sendable () -> Void
  ) {
    SystemClock.shared.schedule(after: OutputPatience.interval) {
      if isOver.withLock({ $0 }) { return }
      var patience = patience
      let goesOn = patience.goesOn(
        progress: progress, holdsResults: output.holdsResults, isStopping: isStopping.withLock { $0 })
      if goesOn { wait(patience, until: isOver, end) } else { end() }
    }
  }

  /// The same for ``ProcessEnd``: on the thread of the caller, and for one interval only.
  static func finishNow() {
    if isGivenUp.withLock({ $0 }) { return }
    let over = Signal()
    let idle = Locked(false)
    whenIdle {
      idle.withLock { $0 = true }
      over.raise()
    }
    // A timer of the clock's would not do: its thread may be the one that exits.
    if !idle.withLock({ $0 }) {
      HostThread.detach(name: "kizuna-exit") {
        // Not interrupted: the thread lets no signal through.
        var interval = timespec(tv_sec: 0, tv_nsec: Int(OutputPatience.interval))
        nanosleep(&interval, nil)
        over.raise()
      }
    }
    over.wait()
  }

  private static var progress: Int { output.progress + errors.progress }

  private static func whenIdle(_ handler: @escaping @Sendable () -> Void) {
    output.whenIdle { errors.whenIdle(handler) }
  }

  /// - Returns: an `errno`, nil when everything was written.
  static func failure(ofWriting text: String, to descriptor: Int32) -> Int32? {
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
