import CLinux
import Glibc

/// Another program, started by this one, with its output taken line by line.
///
/// Two threads read its output and a third waits for its end, so nothing here blocks a caller and a program that writes
/// a lot never stalls. The program gets no standard input.
public final class ChildProcess: Sendable {
  /// How a program ended.
  public struct Ending: Sendable, Hashable {
    /// The exit code, or 128 and the signal's number.
    public let code: Int32
    /// Lines of standard output and standard error, complete.
    public let output: [String]
    public let errors: [String]
  }

  public enum Stream: Int, Sendable, Hashable { case output, errors }

  public let name: String
  public let pid: pid_t

  private struct Waiter {
    let id: UInt64
    let stream: Stream
    let accepts: @Sendable (String) -> Bool
    let continuation: CheckedContinuation<String, any Error>
  }

  private struct State {
    var lines: [[String]] = [[], []]
    /// How many lines `line` has gone past.
    var consumed = [0, 0]
    var openStreams = 2
    var code: Int32?
    var waiters: [Waiter] = []
    var nextID: UInt64 = 0
    var endings: [CheckedContinuation<Ending, Never>] = []
  }

  private let state = Locked(State())

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - executable: a path; the search path is not looked at.
  ///   - environment: variables to set besides those of this process.
  ///   - echoesErrors: copies its standard error to ours, too.
  /// - Throws: `HostFileError` when it cannot be started.
  public init(
    executable: String, arguments: [String], environment: [String: String] = [:], echoesErrors: Bool = false
  ) throws(HostFileError) {
    var pipes: [[Int32]] = [[-1, -1], [-1, -1]]
    for index in 0..<2 where kd_pipe_closed_on_exec(&pipes[index]) != 0 {
      throw HostFileError(path: executable, code: errno)
    }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, pipes[0][1], 1)
    posix_spawn_file_actions_adddup2(&actions, pipes[1][1], 2)
    // The threads of this process block signals; the program starts with none blocked or ignored.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var defaults = sigset_t()
    sigemptyset(&defaults)
    for number in [SIGPIPE, SIGINT, SIGTERM, SIGHUP] { sigaddset(&defaults, number) }
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var argv = ([executable] + arguments).map { strdup($0) }
    argv.append(nil)
    var envp = Self.environment(adding: environment).map { strdup($0) }
    envp.append(nil)
    defer { for pointer in argv + envp { free(pointer) } }
    var pid = pid_t()
    let result = posix_spawn(&pid, executable, &actions, &attributes, argv, envp)
    for ends in pipes { close(ends[1]) }
    guard result == 0 else {
      for ends in pipes { close(ends[0]) }
      throw HostFileError(path: executable, code: result)
    }
    self.pid = pid
    name = String(executable[(executable.lastIndex(of: "/").map(executable.index(after:)) ?? executable.startIndex)...])
    read(pipes[0][0], .output, echo: false)
    read(pipes[1][0], .errors, echo: echoesErrors)
    HostThread.detach(name: "child-wait") { [self] in waitForEnd() }
  }

  private static func environment(adding extra: [String: String]) -> [String] {
    let list = ProcessEnvironment.entries.filter { entry in
      !extra.keys.contains { entry.hasPrefix("\($0)=") }
    }
    return list + extra.map { "\($0.key)=\($0.value)" }
  }

  /// Sends a signal, unless the program has ended.
  public func send(signal number: Int32) {
    state.withLock { state in
      // Only a process that has not been waited for keeps its id.
      if state.code == nil { kill(pid, number) }
    }
  }

  /// The next line of a stream that `accepts`, among those no earlier call has gone past.
  ///
  /// - Throws: `ChildProcessError` when the program ends first or the time is over.
  public func line(
    of stream: Stream, within timeout: UInt64, where accepts: @escaping @Sendable (String) -> Bool = { _ in true }
  ) async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
      let id = state.withLock { state -> UInt64 in
        state.nextID += 1
        state.waiters.append(Waiter(id: state.nextID, stream: stream, accepts: accepts, continuation: continuation))
        return state.nextID
      }
      SystemClock.shared.schedule(after: timeout) { [self] in
        let waiter = state.withLock { state in
          state.waiters.firstIndex { $0.id == id }.map { state.waiters.remove(at: $0) }
        }
        waiter?.continuation.resume(throwing: ChildProcessError(message: "\(name) did not write what was waited for"))
      }
      settle()
    }
  }

  /// How the program ended, with all its output. Waits for the end.
  public func ending() async -> Ending {
    await withCheckedContinuation { continuation in
      state.withLock { $0.endings.append(continuation) }
      settle()
    }
  }

  /// Asks the program to end, and ends it after `grace` nanoseconds.
  @discardableResult
  public func stop(grace: UInt64 = .seconds(10)) async -> Ending {
    send(signal: SIGTERM)
    let timer = SystemClock.shared.schedule(after: grace) { [self] in send(signal: SIGKILL) }
    defer { timer.cancel() }
    return await ending()
  }

  // MARK: Threads

  private func read(_ descriptor: Int32, _ stream: Stream, echo: Bool) {
    HostThread.detach(name: "child-read") { [self] in
      var rest: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 16384)
      while true {
        let count = Glibc.read(descriptor, &chunk, chunk.count)
        if count < 0, errno == EINTR { continue }
        if count <= 0 { break }
        rest.append(contentsOf: chunk[0..<count])
        var lines: [String] = []
        while let end = rest.firstIndex(of: 0x0A) {
          lines.append(String(decoding: rest[..<end], as: UTF8.self))
          rest.removeSubrange(...end)
        }
        if echo { for line in lines { StandardStreams.printError(line) } }
        state.withLock { $0.lines[stream.rawValue] += lines }
        settle()
      }
      close(descriptor)
      state.withLock { state in
        if !rest.isEmpty { state.lines[stream.rawValue].append(String(decoding: rest, as: UTF8.self)) }
        state.openStreams -= 1
      }
      settle()
    }
  }

  private func waitForEnd() {
    // Without reaping first, so that the id stays ours until `code` says that it is not.
    var info = siginfo_t()
    while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR {}
    state.withLock { state in
      var status: Int32 = 0
      while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
      let signal = status & 0x7F
      state.code = signal == 0 ? (status >> 8) & 0xFF : 128 + signal
    }
    settle()
  }

  /// Answers every call whose answer is known.
  private func settle() {
    var answers: [() -> Void] = []
    state.withLock { state in
      var waiting: [Waiter] = []
      for waiter in state.waiters {
        let index = waiter.stream.rawValue
        let fresh = state.lines[index][state.consumed[index]...]
        if let found = fresh.firstIndex(where: waiter.accepts) {
          state.consumed[index] = found + 1
          let line = state.lines[index][found]
          answers.append { waiter.continuation.resume(returning: line) }
        } else if state.openStreams == 0, let code = state.code {
          let error = ChildProcessError(message: "\(name) ended with \(code) before it wrote what was waited for")
          answers.append { waiter.continuation.resume(throwing: error) }
        } else {
          waiting.append(waiter)
        }
      }
      state.waiters = waiting
      if state.openStreams == 0, let code = state.code {
        let ending = Ending(code: code, output: state.lines[0], errors: state.lines[1])
        for continuation in state.endings { answers.append { continuation.resume(returning: ending) } }
        state.endings = []
      }
    }
    for answer in answers { answer() }
  }
}

/// A program did not do what was waited for.
public struct ChildProcessError: Error, Sendable, Hashable, CustomStringConvertible {
  public let message: String

  public init(message: String) {
    self.message = message
  }

  public var description: String { message }
}
