import CLinux
import Glibc

/// Swift's global executor of a whole process, on as many threads of its own as there are processors.
///
/// The runtime's own executor stands on libdispatch, which on Linux counts its busy threads once a second for as long as
/// the process lives. A program that waits for months should sleep instead. Only a program may decide this for its
/// process, so only the executables call `install()`; a library client lives with the executor it finds.
public enum GlobalPool {
  /// Takes the jobs of every task that prefers no other executor. Called once, first of all, before any task runs.
  /// Opens missing standard descriptors too (``StandardDescriptors``).
  public static func install() {
    StandardDescriptors.fill()
    kd_take_global_jobs { job in
      // The runtime never enqueues nothing.
      GlobalPool.queue.add(job!)
    }
  }

  private static let queue = Queue()

  private final class Queue: Sendable {
    private struct Job: @unchecked Sendable {  // owned by whoever holds it; the runtime lets any thread run it
      let pointer: UnsafeMutableRawPointer
    }

    private struct State {
      /// Those before `next` are taken.
      var jobs: [Job] = []
      var next = 0
      var threads = 0
      var idle = 0

      mutating func pop() -> Job? {
        guard next < jobs.count else { return nil }
        let job = jobs[next]
        next += 1
        if next == jobs.count || next == 1024 {
          jobs.removeFirst(next)
          next = 0
        }
        return job
      }
    }

    private let state = Locked(State())
    private let signal = Signal()
    private let width = max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

    func add(_ pointer: UnsafeMutableRawPointer) {
      let job = Job(pointer: pointer)
      let (mustStart, mustRaise) = state.withLock { state -> (Bool, Bool) in
        state.jobs.append(job)
        if state.idle > 0 {
          state.idle -= 1
          return (false, true)
        }
        guard state.threads < width else { return (false, false) }
        state.threads += 1
        return (true, false)
      }
      if mustRaise { signal.raise() }
      if mustStart { HostThread.detach(name: "swift-pool") { self.loop() } }
    }

    private func loop() -> Never {
      while true {
        let job = state.withLock { state -> Job? in
          if let job = state.pop() { return job }
          state.idle += 1
          return nil
        }
        if let job { kd_run_global_job(job.pointer) } else { signal.wait() }
      }
    }
  }
}
