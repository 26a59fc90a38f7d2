import Glibc
import HostKit

/// Finds out whether the tasks of this process have come to rest.
///
/// Yielding lets the queued tasks run, and a barrier empties each known thread. Neither sees a job that another thread
/// of the pool has taken and is still running, so the kernel is asked for the state of every thread. In a process that
/// runs other tests at the same time some thread is always busy; then a bounded real time must do.
enum Quiescence {
  private static let yields = 8
  private static let budget: UInt64 = .milliseconds(3)

  static func wait(threads: [SerialThread]) async {
    let end = SystemClock.monotonic + budget
    var looks = 0
    repeat {
      for _ in 0..<yields { await Task.yield() }
      for thread in threads { await barrier(thread) }
      for _ in 0..<yields { await Task.yield() }
      looks += 1
      if looks >= 2, othersAsleep() { return }
    } while SystemClock.monotonic < end
  }

  /// A millisecond of real time without holding a thread.
  static func pause() async {
    await withCheckedContinuation { continuation in
      SystemClock.shared.schedule(after: .milliseconds(1)) { continuation.resume() }
    }
  }

  private static func barrier(_ thread: SerialThread) async {
    await withCheckedContinuation { continuation in
      thread.run { continuation.resume() }
    }
  }

  /// Whether every thread but the calling one waits for something.
  static func othersAsleep() -> Bool {
    let own = ownThread()
    guard let directory = opendir("/proc/self/task") else { return true }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard let thread = Int32(name), thread != own else { continue }
      if isRunning(thread) { return false }
    }
    return true
  }

  /// The calling thread's number; "0" would be none.
  private static func ownThread() -> Int32 {
    var target = [CChar](repeating: 0, count: 64)
    let count = readlink("/proc/thread-self", &target, target.count)
    // "<process>/task/<thread>"
    guard count > 0 else { return 0 }
    let bytes = target.prefix(count).map { UInt8(bitPattern: $0) }
    return String(decoding: bytes, as: UTF8.self).split(separator: "/").last.flatMap { Int32($0) } ?? 0
  }

  private static func isRunning(_ thread: Int32) -> Bool {
    let file = open("/proc/self/task/\(thread)/stat", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return false }
    defer { close(file) }
    var line = [UInt8](repeating: 0, count: 96)
    let count = read(file, &line, line.count)
    // "tid (name) S …": the name may hold anything, so the state is what follows the last parenthesis.
    guard count > 0, let end = line[..<count].lastIndex(of: UInt8(ascii: ")")), end + 2 < count else { return false }
    return line[end + 2] == UInt8(ascii: "R")
  }
}
