import CLinux
import Glibc
import HostKit

/// Says when the host woke from suspend, or its calendar was set: the moment at which a host without a screen "comes to
/// the foreground". The scheduler's default on Linux.
///
/// A timer of the kernel that is set for the end of time and cancelled by every jump of the calendar; one thread sleeps
/// on it. A process that was merely stopped sees no jump: the scheduler notices that by its own timer being late.
public final class KizunaSyncResumeSource: KizunaSyncForegroundSource, ResumeDetector, Sendable {
  private let end = Locked<StopDescriptor?>(nil)

  public init() {}

  deinit {
    stop()
  }

  public func start(onForeground: @escaping @Sendable () -> Void) {
    stop()
    let timer = timerfd_create(CLOCK_REALTIME, Int32(TFD_CLOEXEC | TFD_NONBLOCK))
    guard timer >= 0 else { return }
    guard let stopping = StopDescriptor(), Self.arm(timer) else {
      close(timer)
      return
    }
    end.withLock { $0 = stopping }
    HostThread.detach(name: "kizuna-resume") {
      defer { close(timer) }
      while stopping.waitFor(timer) {
        var count: UInt64 = 0
        let jumped = read(timer, &count, 8) < 0 && errno == ECANCELED
        // Set again first: a second jump during the callback must not be missed.
        guard Self.arm(timer) else { return }
        if jumped { onForeground() }
      }
    }
  }

  public func stop() {
    end.withLock { end -> StopDescriptor? in
      defer { end = nil }
      return end
    }?.stop()
  }

  private static func arm(_ timer: Int32) -> Bool {
    var spec = itimerspec()
    // Far beyond any calendar, and safe where the kernel counts nanoseconds in 63 bits.
    spec.it_value.tv_sec = 9_000_000_000
    let flags = Int32(TFD_TIMER_ABSTIME) | Int32(TFD_TIMER_CANCEL_ON_SET)
    // Setting it may itself report a jump that happened before; the timer is armed all the same.
    return timerfd_settime(timer, flags, &spec, nil) == 0 || errno == ECANCELED
  }
}
