import CLinux
import Glibc

/// Plain threads for work that blocks and therefore must not run on Swift's cooperative pool.
public enum HostThread {
  private final class Start: Sendable {
    let name: String
    let body: @Sendable () -> Void
    init(name: String, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Starts a detached thread that runs `body` and ends. All signals are blocked in it, so that they reach the thread
  /// that asked for them.
  /// - Parameter name: shown by `ps -L` and debuggers; at most 15 bytes.
  public static func detach(name: String, _ body: @escaping @Sendable () -> Void) {
    let start = Unmanaged.passRetained(Start(name: name, body: body))
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    defer { pthread_attr_destroy(&attributes) }
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_BLOCK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    var thread = pthread_t()
    let result = pthread_create(
      &thread, &attributes,
      { context in
        // The context is the retained Start made above.
        let start = Unmanaged<Start>.fromOpaque(context!).takeRetainedValue()
        _ = kd_name_thread(start.name)
        start.body()
        return nil
      }, start.toOpaque())
    precondition(result == 0, "no thread could be started: error \(result)")
  }
}
