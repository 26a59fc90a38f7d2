import Glibc
import HostKit
import KizunaSync
import Testing

@Suite(.serialized) struct KizunaSyncResumeSourceTests {
  /// Sets the calendar to what it says: nothing moves, but the kernel tells everybody that it was set.
  static func touchCalendar() -> Bool {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return clock_settime(CLOCK_REALTIME, &now) == 0
  }

  @Test(.enabled("setting the clock takes root", { touchCalendar() }))
  func aJumpOfTheCalendarIsAReturn() async {
    let source = KizunaSyncResumeSource()
    let (rings, ring) = AsyncStream<Void>.makeStream()
    source.start { ring.yield() }
    // The thread may not be asleep yet, so the calendar is touched until it hears.
    let toucher = Task {
      while !Task.isCancelled {
        _ = Self.touchCalendar()
        await Task.yield()
      }
    }
    var iterator = rings.makeAsyncIterator()
    await iterator.next()
    await iterator.next()
    toucher.cancel()
    source.stop()
    source.stop()
  }

  @Test func itStartsAndStopsWithoutAWord() {
    let heard = Locked(0)
    let source = KizunaSyncResumeSource()
    for _ in 0..<20 {
      source.start { heard.withLock { $0 += 1 } }
      source.stop()
    }
  }

  @Test func theNotificationSourceIsSilentHere() {
    let source = KizunaSyncNotificationForegroundSource()
    source.start { Issue.record("Linux has no such notification") }
    source.stop()
  }
}
