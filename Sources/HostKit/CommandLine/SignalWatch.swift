import CLinux
import Glibc

/// Delivers process signals as calls on a thread of their own, where anything may be done.
public enum SignalWatch {
  /// Takes the signals away from their default action and calls `handler` for each, one after the other.
  ///
  /// After `SIGTERM` and `SIGINT` the end of the process does not wait for readers of its output that stall.
  ///
  /// Missing standard descriptors are opened first (``StandardDescriptors``): the pipe in here must not take their numbers.
  ///
  /// Call it at most once in a process. `SIGPIPE` is ignored from then on; writes report the error instead.
  public static func start(_ signals: [Int32], _ handler: @escaping @Sendable (Int32) -> Void) {
    signal(SIGPIPE, SIG_IGN)
    StandardDescriptors.fill()
    var ends: [Int32] = [-1, -1]
    precondition(kd_pipe_closed_on_exec(&ends) == 0, "no pipe for signals: error \(errno)")
    signalPipe = ends[1]
    // A handler rather than a blocked signal and a signalfd: the main thread of an asynchronous program waits with all
    // signals let through, whatever was blocked before.
    var action = sigaction()
    action.__sigaction_handler.sa_handler = passOn
    action.sa_flags = SA_RESTART
    for number in signals { sigaction(number, &action, nil) }
    let reader = ends[0]
    HostThread.detach(name: "kizuna-signal") {
      var number: UInt8 = 0
      while true {
        let count = read(reader, &number, 1)
        if count < 0, errno == EINTR { continue }
        guard count == 1 else { return }
        if [SIGTERM, SIGINT].contains(Int32(number)) { StandardStreams.hurry() }
        handler(Int32(number))
      }
    }
  }
}

/// Written once before the handlers exist.
nonisolated(unsafe) private var signalPipe: Int32 = -1

/// Runs in any thread, between any two instructions: only `write` is allowed here.
private func passOn(_ number: Int32) {
  let before = errno
  var byte = UInt8(truncatingIfNeeded: number)
  _ = write(signalPipe, &byte, 1)
  errno = before
}
