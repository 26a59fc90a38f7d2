import Glibc

/// A serial executor with a thread of its own, for actors whose work blocks (SQLite, name resolution).
///
/// A task may prefer it, too (`Task(executorPreference:)`): what the task then does outside of any actor happens on the
/// thread. A task resumed by a continuation would otherwise come back by way of the global pool.
///
/// The thread starts with the first job and sleeps between jobs. `stop()` lets it end once the queue is empty.
public final class SerialThread: SerialExecutor, TaskExecutor, Sendable {
  private struct State {
    var jobs: [Job] = []
    var running = false
    /// The thread found nothing to do and sleeps, or is about to.
    var waiting = false
    var stopped = false
    var thread: pthread_t?
    var whenEnded: [CheckedContinuation<Void, Never>] = []
  }

  private enum Job {
    case task(UnownedJob)
    case closure(@Sendable () -> Void)
  }

  private let name: String
  private let state = Locked(State())
  private let signal = Signal()

  /// - Parameter name: shown by `ps -L`; at most 15 bytes.
  public init(name: String) {
    self.name = name
  }

  public func enqueue(_ job: consuming ExecutorJob) {
    add(.task(UnownedJob(job)))
  }

  /// Runs a closure on the thread, in order with the actor's jobs.
  public func run(_ body: @escaping @Sendable () -> Void) {
    add(.closure(body))
  }

  /// Lets the thread end when its queue is empty. A job added later starts a new one, which ends with its queue, too.
  public func stop() {
    let mustRaise = state.withLock { state -> Bool in
      state.stopped = true
      defer { state.waiting = false }
      return state.waiting
    }
    if mustRaise { signal.raise() }
  }

  /// `stop()`, and returns when the thread has ended. Never called on the thread itself.
  public func stopAndWait() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state -> Bool in
        if state.running { state.whenEnded.append(continuation) }
        return !state.running
      }
      if isOver { continuation.resume() } else { stop() }
    }
  }

  public func isIsolatingCurrentContext() -> Bool? {
    state.withLock { state in
      guard state.running, let thread = state.thread else { return false }
      return pthread_equal(thread, pthread_self()) != 0
    }
  }

  public func checkIsolated() {
    precondition(isIsolatingCurrentContext() == true, "not on the thread \(name)")
  }

  private func add(_ job: Job) {
    let (mustStart, mustRaise) = state.withLock { state -> (Bool, Bool) in
      state.jobs.append(job)
      defer {
        state.running = true
        state.waiting = false
      }
      return (!state.running, state.waiting)
    }
    if mustStart {
      HostThread.detach(name: name) { self.loop() }
    } else if mustRaise {
      signal.raise()
    }
  }

  private func loop() {
    state.withLock { $0.thread = pthread_self() }
    while true {
      let (jobs, ended, waiting) = state.withLock { state -> ([Job], Bool, [CheckedContinuation<Void, Never>]) in
        let jobs = state.jobs
        state.jobs = []
        let ended = jobs.isEmpty && state.stopped
        var waiting: [CheckedContinuation<Void, Never>] = []
        if ended {
          state.running = false
          state.thread = nil
          swap(&waiting, &state.whenEnded)
        }
        state.waiting = jobs.isEmpty && !ended
        return (jobs, ended, waiting)
      }
      if ended {
        for continuation in waiting { continuation.resume() }
        return
      }
      if jobs.isEmpty {
        signal.wait()
        continue
      }
      for job in jobs {
        switch job {
        case .task(let job):
          job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
        case .closure(let body): body()
        }
      }
    }
  }
}

/// A semaphore for a thread that sleeps until there is work.
package final class Signal: @unchecked Sendable {  // sem_t is thread-safe by definition
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  package init() {
    sem_init(semaphore, 0, 0)
  }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  package func raise() {
    sem_post(semaphore)
  }

  package func wait() {
    while sem_wait(semaphore) != 0 && errno == EINTR {}
  }
}
