#if Postgres
  import CLinux
  import Glibc

  /// Wakes a thread that waits for a socket.
  final class WakePipe: Sendable {
    private let ends: [Int32]

    /// Nil when the process has no descriptors left.
    init?() {
      var ends: [Int32] = [-1, -1]
      guard kd_pipe_closed_on_exec(&ends) == 0 else { return nil }
      self.ends = ends
    }

    deinit {
      close(ends[0])
      close(ends[1])
    }

    /// Stays raised.
    func raise() {
      var byte: UInt8 = 1
      _ = write(ends[1], &byte, 1)
    }

    /// Waits until the socket can be read or this is raised.
    func wait(with socket: Int32) {
      var polls = [
        pollfd(fd: socket, events: Int16(POLLIN), revents: 0), pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0),
      ]
      _ = poll(&polls, 2, -1)
    }

    /// Waits until this is raised or the time is over.
    func wait(milliseconds: Int32) {
      var end = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
      _ = poll(&end, 1, milliseconds)
    }
  }
#endif
