import CCurl
import CLinux
import Glibc
import HostKit

/// The curl thread and its inbox. The thread starts with the first request, sleeps without a timeout while nothing is
/// under way, and ends with `stop()`.
final class CurlLoop: Sendable {
  private enum Command {
    case start(CurlTransfer)
    case cancel(CurlTransfer)
    case dropConnections
  }

  private struct Inbox {
    var commands: [Command] = []
    var isStopped = false
    var isRunning = false
    /// The thread is in `poll`, or about to enter it: a new command must ring.
    var isWaiting = false
    var whenEnded: [CheckedContinuation<Void, Never>] = []
  }

  private let settings: CurlHTTPClient.Settings
  private let inbox = Locked(Inbox())
  private let bell: Bell

  init(_ settings: CurlHTTPClient.Settings) {
    self.settings = settings
    bell = Bell()
  }

  /// False when the loop was stopped; the transfer was not taken then.
  func start(_ transfer: CurlTransfer) -> Bool { add(.start(transfer)) }

  func cancel(_ transfer: CurlTransfer) { _ = add(.cancel(transfer)) }

  func dropConnections() { _ = add(.dropConnections) }

  private func add(_ command: Command) -> Bool {
    let (taken, mustStart, mustRing) = inbox.withLock { inbox -> (Bool, Bool, Bool) in
      if inbox.isStopped { return (false, false, false) }
      inbox.commands.append(command)
      defer {
        inbox.isRunning = true
        inbox.isWaiting = false
      }
      return (true, !inbox.isRunning, inbox.isWaiting)
    }
    if mustStart {
      // The thread keeps the loop alive until it is stopped.
      HostThread.detach(name: "kizuna-http") { self.run() }
    } else if mustRing {
      bell.ring()
    }
    return taken
  }

  /// Lets the thread fail what is pending and end.
  func stop() {
    inbox.withLock { $0.isStopped = true }
    bell.ring()
  }

  /// Returns when the thread has ended. The loop must have been stopped.
  func waitUntilEnded() async {
    await withCheckedContinuation { continuation in
      let isOver = inbox.withLock { inbox -> Bool in
        if inbox.isRunning { inbox.whenEnded.append(continuation) }
        return !inbox.isRunning
      }
      if isOver { continuation.resume() }
    }
  }

  // MARK: On the thread

  private func run() {
    do {
      let worker = CurlWorker(settings)
      while true {
        let (commands, isStopped) = inbox.withLock { inbox -> ([Command], Bool) in
          defer { inbox.commands.removeAll(keepingCapacity: true) }
          return (inbox.commands, inbox.isStopped)
        }
        if isStopped {
          for case .start(let transfer) in commands { worker.start(transfer) }
          worker.failAll(CurlHTTPClient.shutDownError)
          break
        }
        for command in commands {
          switch command {
          case .start(let transfer): worker.start(transfer)
          case .cancel(let transfer): worker.cancel(transfer)
          case .dropConnections: worker.dropConnections()
          }
        }
        worker.perform()
        let mayWait = inbox.withLock { inbox -> Bool in
          inbox.isWaiting = inbox.commands.isEmpty && !inbox.isStopped
          return inbox.isWaiting
        }
        if mayWait { worker.wait(bell) }
      }
    }
    // The worker is gone, and with it every handle and connection.
    let waiting = inbox.withLock { inbox -> [CheckedContinuation<Void, Never>] in
      inbox.isRunning = false
      defer { inbox.whenEnded = [] }
      return inbox.whenEnded
    }
    for continuation in waiting { continuation.resume() }
  }
}

/// An eventfd that interrupts the thread's `poll`. (libcurl's own wake-up costs one more system call and is inherited by
/// child processes.)
final class Bell: Sendable {
  let descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))

  deinit { close(descriptor) }

  func ring() {
    var one: UInt64 = 1
    _ = write(descriptor, &one, 8)
  }

  func silence() {
    var count: UInt64 = 0
    _ = read(descriptor, &count, 8)
  }
}
