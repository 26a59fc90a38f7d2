import CLinux
import Glibc

/// Delivers process signals as calls on a thread of their own, where anything may be done.
public enum SignalWatch {
  /// Takes the signals away from their default action and calls `handler` for each, one after the other.
  ///
  /// Call it once, first thing in `main`, before any other thread exists: a thread started earlier would still be
  /// ended by the signal's default action. `SIGPIPE` is ignored from then on; writes report the error instead.
  public static func start(_ signals: [Int32], _ handler: @escaping @Sendable (Int32) -> Void) {
    signal(SIGPIPE, SIG_IGN)
    var set = sigset_t()
    sigemptyset(&set)
    for number in signals { sigaddset(&set, number) }
    pthread_sigmask(SIG_BLOCK, &set, nil)
    let descriptor = signalfd(-1, &set, Int32(SFD_CLOEXEC))
    precondition(descriptor >= 0, "signalfd failed: error \(errno)")
    HostThread.detach(name: "kizuna-signal") {
      var info = signalfd_siginfo()
      while true {
        let count = read(descriptor, &info, MemoryLayout<signalfd_siginfo>.size)
        if count < 0, errno == EINTR { continue }
        guard count == MemoryLayout<signalfd_siginfo>.size else { return }
        handler(Int32(bitPattern: info.ssi_signo))
      }
    }
  }
}
