import CLibwebsockets
import Glibc
import HostKit

/// One libwebsockets context and the one thread that services it, usable as the executor of an actor.
///
/// The thread starts with the first job. It sleeps in libwebsockets' `poll` while sockets exist and on a semaphore while
/// none do, so that a process without a connection is never woken. Jobs run between two rounds of service, never inside
/// a libwebsockets callback.
package final class LwsLoop: SerialExecutor, Sendable {
  /// The loop of all client connections of this process. It is never stopped.
  package static let shared = LwsLoop(
    name: "kizuna-realtime", options: ContextOptions(usesTLS: true, maximumSockets: 1024))

  package struct ContextOptions: Sendable {
    package var usesTLS: Bool
    package var maximumSockets: Int

    package init(usesTLS: Bool, maximumSockets: Int) {
      self.usesTLS = usesTLS
      self.maximumSockets = maximumSockets
    }
  }

  private enum Job {
    case task(UnownedJob)
    case closure(@Sendable () -> Void)
  }

  private enum Place {
    case notStarted, running, polling, parked
  }

  private struct State {
    var jobs: [Job] = []
    var place = Place.notStarted
    var stopping = false
    var thread: pthread_t?
    /// Only for `lws_cancel_service`, the one libwebsockets call that other threads may make.
    var context: SendablePointer?
    var whenStopped: [@Sendable () -> Void] = []
  }

  /// A libwebsockets handle on its way through a lock.
  private struct SendablePointer: @unchecked Sendable {  // used on the loop thread, or for lws_cancel_service only
    let pointer: OpaquePointer
  }

  private let name: String
  private let options: ContextOptions
  private let state = Locked(State())
  private let signal = Signal()
  // Touched on the loop thread only.
  private nonisolated(unsafe) var contextOnLoop: OpaquePointer?
  private nonisolated(unsafe) var openSockets = 0

  /// - Parameter name: shown by `ps -L`; at most 15 bytes.
  package init(name: String, options: ContextOptions) {
    self.name = name
    self.options = options
  }

  // MARK: Executor

  package func enqueue(_ job: consuming ExecutorJob) {
    add(.task(UnownedJob(job)))
  }

  /// Runs a closure on the loop thread, in order with the jobs of the actors that live there.
  package func run(_ body: @escaping @Sendable () -> Void) {
    add(.closure(body))
  }

  package func isIsolatingCurrentContext() -> Bool? {
    isOnLoop
  }

  package func checkIsolated() {
    precondition(isOnLoop, "not on the thread \(name)")
  }

  package var isOnLoop: Bool {
    state.withLock { state in
      guard let thread = state.thread else { return false }
      return pthread_equal(thread, pthread_self()) != 0
    }
  }

  private func add(_ job: Job) {
    let mustStart = state.withLock { state -> Bool in
      state.jobs.append(job)
      return wake(&state)
    }
    if mustStart {
      HostThread.detach(name: name) { self.loop() }
    }
  }

  /// Whether a thread has to be started.
  private func wake(_ state: inout State) -> Bool {
    switch state.place {
    case .notStarted:
      state.place = .running
      return true
    case .running:
      // It looks at the queue before it sleeps.
      break
    case .polling:
      if let context = state.context { lws_cancel_service(context.pointer) }
      state.place = .running
    case .parked:
      signal.raise()
      state.place = .running
    }
    return false
  }

  // MARK: What the loop thread offers to the code that runs on it

  /// The context, created by the first call. Loop thread only.
  /// - Returns: nil when libwebsockets could not start, which is a lack of memory or descriptors.
  package func context() -> OpaquePointer? {
    if let contextOnLoop { return contextOnLoop }
    LwsLog.install()
    var info = lws_context_creation_info()
    info.options = UInt64(LWS_SERVER_OPTION_EXPLICIT_VHOSTS) | UInt64(LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME)
    info.fd_limit_per_thread = UInt32(options.maximumSockets)
    // A TLS record at a time; also the room for the headers of an upgrade request.
    info.pt_serv_buf_size = 16_384
    info.max_http_header_data = 16_384
    // Deadlines are ours; libwebsockets' own must not come first.
    info.timeout_secs = 86_400
    guard let context = Self.create(info, usesTLS: options.usesTLS) else { return nil }
    contextOnLoop = context
    let shared = SendablePointer(pointer: context)
    state.withLock { $0.context = shared }
    return context
  }

  /// Every initialisation of OpenSSL moves a process-wide slot that libwebsockets finds its sockets by, and would break
  /// handshakes that are under way; so only the first context with TLS in this process does it.
  private static func create(_ info: lws_context_creation_info, usesTLS: Bool) -> OpaquePointer? {
    var info = info
    guard usesTLS else { return lws_create_context(&info) }
    return tlsIsInitialised.withLock { isInitialised -> SendablePointer? in
      var info = info
      if !isInitialised { info.options |= UInt64(LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT) }
      isInitialised = true
      return lws_create_context(&info).map { SendablePointer(pointer: $0) }
    }?.pointer
  }

  private static let tlsIsInitialised = Locked(false)

  /// Tells the loop that a socket of this context begins or ends. While the count is above zero the loop sleeps in
  /// `poll`. Loop thread only.
  package func socketBegan() { openSockets += 1 }
  package func socketEnded() { openSockets -= 1 }

  // MARK: Ending

  /// Destroys the context with all its sockets, ends the thread and then calls `then` on it. For loops other than
  /// `shared`; nothing may be enqueued afterwards.
  package func stop(then: @escaping @Sendable () -> Void) {
    let mustStart = state.withLock { state -> Bool in
      state.stopping = true
      state.whenStopped.append(then)
      return wake(&state)
    }
    if mustStart {
      HostThread.detach(name: name) { self.loop() }
    }
  }

  // MARK: The thread

  private enum Next {
    case jobs([Job])
    case poll, park
    case end([@Sendable () -> Void])
  }

  private func loop() {
    state.withLock { $0.thread = pthread_self() }
    while true {
      let hasSockets = openSockets > 0
      let next = state.withLock { state -> Next in
        if !state.jobs.isEmpty {
          let jobs = state.jobs
          state.jobs = []
          return .jobs(jobs)
        }
        if state.stopping {
          defer { state.whenStopped = [] }
          return .end(state.whenStopped)
        }
        state.place = hasSockets ? .polling : .parked
        return hasSockets ? .poll : .park
      }
      switch next {
      case .jobs(let jobs):
        for job in jobs {
          switch job {
          case .task(let job): job.runSynchronously(on: asUnownedSerialExecutor())
          case .closure(let body): body()
          }
        }
      case .poll:
        lws_service(contextOnLoop, 0)
        state.withLock { $0.place = .running }
      case .park:
        signal.wait()
        state.withLock { $0.place = .running }
      case .end(let callbacks):
        let context = contextOnLoop
        state.withLock { $0.context = nil }
        contextOnLoop = nil
        if let context { lws_context_destroy(context) }
        for callback in callbacks { callback() }
        return
      }
    }
  }
}
