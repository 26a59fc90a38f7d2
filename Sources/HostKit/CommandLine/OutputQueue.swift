import Glibc

/// Writes lines to a descriptor on a thread of its own, so that nobody waits for a reader that does not read.
///
/// Lines keep their order. What waits is bounded as ``LineBacklog`` says. The thread starts with the first line, sleeps
/// while there is none, and lives as long as the process.
final class OutputQueue: Sendable {
  private struct State {
    var backlog: LineBacklog
    var isRunning = false
    /// The thread found nothing to do and sleeps, or is about to.
    var isWaiting = false
    /// The line that is being written, and how many were before it.
    var current: LineBacklog.Line?
    var written = 0
    var loss: Int32?
    var onLoss: @Sendable () -> Void = {}
    var whenIdle: [@Sendable () -> Void] = []

    var isIdle: Bool { backlog.isEmpty && current == nil }
  }

  private let descriptor: Int32
  private let name: String
  private let state: Locked<State>
  private let signal = Signal()

  /// - Parameters:
  ///   - descriptor: stays open and is not owned.
  ///   - name: of the thread; at most 15 bytes.
  init(descriptor: Int32, name: String, limits: LineBacklog.Limits = LineBacklog.Limits()) {
    self.descriptor = descriptor
    self.name = name
    state = Locked(State(backlog: LineBacklog(limits: limits)))
  }

  /// Why a line was lost although somebody wants to read it, an `errno`; see ``StandardStreams/lostOutput``.
  var loss: Int32? { state.withLock { $0.loss } }

  /// Whether a result waits to be written, or is being written.
  var holdsResults: Bool { state.withLock { $0.backlog.holdsResults || $0.current?.isResult == true } }

  /// How many lines were written or lost; grows while the reader reads.
  var progress: Int { state.withLock { $0.written } }

  /// Adds lines that are never dropped, whatever waits already.
  func add(result text: String) {
    add(LineBacklog.Line(text: text, notice: nil))
  }

  /// Adds a line that may be dropped when too much waits.
  /// - Parameter notice: a line for the place of those that were dropped, if this is the last of them.
  func add(event text: String, orTell notice: @escaping @Sendable (_ dropped: Int) -> String) {
    add(LineBacklog.Line(text: text, notice: notice))
  }

  /// Calls `handler` on the queue's thread for each line that could not be written.
  func onLoss(_ handler: @escaping @Sendable () -> Void) {
    state.withLock { $0.onLoss = handler }
  }

  /// Calls `handler` once, when no line waits: at once, or on the queue's thread.
  func whenIdle(_ handler: @escaping @Sendable () -> Void) {
    let isIdle = state.withLock { state -> Bool in
      if !state.isIdle { state.whenIdle.append(handler) }
      return state.isIdle
    }
    if isIdle { handler() }
  }

  private func add(_ line: LineBacklog.Line) {
    let (mustStart, mustRaise) = state.withLock { state -> (Bool, Bool) in
      state.backlog.append(line)
      defer {
        state.isRunning = true
        state.isWaiting = false
      }
      return (!state.isRunning, state.isWaiting)
    }
    if mustStart {
      HostThread.detach(name: name) { self.loop() }
    } else if mustRaise {
      signal.raise()
    }
  }

  private func loop() {
    while true {
      let (line, idle) = state.withLock { state -> (LineBacklog.Line?, [@Sendable () -> Void]) in
        state.current = state.backlog.next()
        guard state.current == nil else { return (state.current, []) }
        state.isWaiting = true
        defer { state.whenIdle = [] }
        return (nil, state.whenIdle)
      }
      for handler in idle { handler() }
      guard let line else {
        signal.wait()
        continue
      }
      let reason = StandardStreams.failure(ofWriting: line.text, to: descriptor)
      let onLoss = state.withLock { state -> (@Sendable () -> Void)? in
        state.written += 1
        guard let reason else { return nil }
        if reason != EPIPE { state.loss = state.loss ?? reason }
        return state.onLoss
      }
      onLoss?()
    }
  }
}
