import CLinux
import Glibc
import HostKit

/// Lets a thread wait for a descriptor until somebody says stop.
final class StopDescriptor: Sendable {
  private let event: Int32

  init?() {
    event = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    if event < 0 { return nil }
  }

  deinit {
    close(event)
  }

  /// Sleeps until `descriptor` can be read (true) or `stop()` was called (false).
  func waitFor(_ descriptor: Int32) -> Bool {
    var watched = [
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0), pollfd(fd: event, events: Int16(POLLIN), revents: 0),
    ]
    while poll(&watched, 2, -1) < 0 {
      guard errno == EINTR else { return false }
    }
    return watched[1].revents == 0
  }

  /// From any thread, any number of times.
  func stop() {
    var one: UInt64 = 1
    _ = write(event, &one, 8)
  }
}
