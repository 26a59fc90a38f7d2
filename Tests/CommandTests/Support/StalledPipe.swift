import Glibc
import HostKit

/// A named pipe that is full from the start, and that nobody reads yet.
final class StalledPipe: Sendable {
  let path: String
  /// Both ends, so that there is a reader, who does not read.
  private let descriptor: Locked<Int32?>
  private let processes = Locked<[ChildProcess]>([])
  private static let filler = String(repeating: ".", count: 4095)

  /// Closes the pipe and kills what still runs on it when `body` is done.
  static func with<Result>(_ scratch: Scratch, body: (StalledPipe) async throws -> Result) async throws -> Result {
    let pipe = try StalledPipe(scratch)
    defer {
      pipe.close()
      for process in pipe.processes.withLock({ $0 }) { process.send(signal: SIGKILL) }
    }
    return try await body(pipe)
  }

  private init(_ scratch: Scratch) throws {
    path = scratch.path + "/stalled"
    guard mkfifo(path, 0o600) == 0 else { throw HostFileError(path: path, code: errno) }
    let descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw HostFileError(path: path, code: errno) }
    self.descriptor = Locked(descriptor)
    let line = Array((Self.filler + "\n").utf8)
    while write(descriptor, line, line.count) > 0 {}
  }

  private func close() {
    descriptor.withLock { descriptor in
      if let open = descriptor { Glibc.close(open) }
      descriptor = nil
    }
  }

  /// Runs `kizuna-doorbell` with one of its streams going here.
  /// - Parameter stream: 1 or 2.
  func doorbell(_ stream: Int, _ arguments: String...) throws -> ChildProcess {
    let words = ([Binaries.doorbell] + arguments).map { "'\($0)'" }.joined(separator: " ")
    return try start("/bin/sh", ["-c", "exec \(words) \(stream)> '\(path)'"])
  }

  /// Somebody reads again. What the pipe was filled with comes first.
  func reader() async throws -> ChildProcess {
    let reader = try start("/bin/cat", [path])
    _ = try await reader.line(of: .output, within: .seconds(150))
    return reader
  }

  /// All that `reader` gets besides the filler, once the program has ended.
  func lines(_ reader: ChildProcess) async -> [String] {
    close()
    return await reader.ending().output.filter { $0 != Self.filler }
  }

  private func start(_ executable: String, _ arguments: [String]) throws -> ChildProcess {
    let process = try ChildProcess(executable: executable, arguments: arguments)
    processes.withLock { $0.append(process) }
    return process
  }
}

extension ChildProcess {
  /// How it ends by itself; it is killed if it does not.
  func ending(within patience: UInt64) async -> Ending {
    let timer = SystemClock.shared.schedule(after: patience) { [self] in send(signal: SIGKILL) }
    defer { timer.cancel() }
    return await ending()
  }
}
