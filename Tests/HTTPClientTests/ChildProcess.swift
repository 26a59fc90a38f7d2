import CLinux
import Glibc

/// A program started by a test, its standard output readable line by line, killed at the latest in `deinit`.
final class ChildProcess {
  let id: Int32
  private let output: UnsafeMutablePointer<FILE>
  private let input: Int32
  private var isWaitedFor = false

  init(_ arguments: [String]) throws {
    var out: [Int32] = [0, 0]
    var into: [Int32] = [0, 0]
    guard kd_pipe_closed_on_exec(&out) == 0, kd_pipe_closed_on_exec(&into) == 0 else {
      throw ChildProcessError(code: errno)
    }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, out[1], 1)
    posix_spawn_file_actions_adddup2(&actions, into[0], 0)
    var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var id: pid_t = 0
    let code = posix_spawn(&id, arguments[0], &actions, nil, &words, environ)
    close(out[1])
    close(into[0])
    guard code == 0 else { throw ChildProcessError(code: code) }
    self.id = id
    output = fdopen(out[0], "r")
    input = into[1]
  }

  deinit {
    kill()
    fclose(output)
    close(input)
  }

  /// The next line without its end; nil when the output ended.
  func readLine() -> String? {
    var line: UnsafeMutablePointer<CChar>?
    var capacity = 0
    defer { free(line) }
    let count = getline(&line, &capacity, output)
    guard count > 0, let line else { return nil }
    let text = String(cString: line)
    return text.hasSuffix("\n") ? String(text.dropLast()) : text
  }

  /// Waits for exactly so many bytes; nil when the output ended before.
  func read(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    return fread(&bytes, 1, count, output) == count ? bytes : nil
  }

  func write(_ bytes: [UInt8]) {
    _ = Glibc.write(input, bytes, bytes.count)
  }

  /// Kills and waits. Idempotent.
  func kill() {
    guard !isWaitedFor else { return }
    Glibc.kill(id, SIGKILL)
    wait()
  }

  /// Waits for its end; its exit status, or nil when it was killed.
  @discardableResult
  func wait() -> Int32? {
    var status: Int32 = 0
    while waitpid(id, &status, 0) < 0, errno == EINTR {}
    isWaitedFor = true
    return status & 0x7F == 0 ? status >> 8 & 0xFF : nil
  }
}

struct ChildProcessError: Error {
  let code: Int32
}
