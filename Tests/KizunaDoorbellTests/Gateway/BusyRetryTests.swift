import HostKit
import KizunaSync
import KizunaSyncTestSupport
import Testing

@testable import KizunaDoorbell

@Suite struct BusyRetryTests {
  private let clock = VirtualClock()
  private let wakes = Locked(0)
  private var count: Int { wakes.withLock { $0 } }

  private func makeRetry() -> BusyRetry {
    let retry = BusyRetry(clock: clock)
    retry.begin { [wakes] in wakes.withLock { $0 += 1 } }
    return retry
  }

  private static let busy = KizunaSyncError.engine(code: "STORE_BUSY", message: "locked")

  @Test func aLockedDatabaseIsTriedAgainSoonAndOnce() async {
    let retry = makeRetry()
    retry.failed(Self.busy)
    retry.failed(Self.busy)
    await clock.advance(by: BusyRetry.delay - 1)
    #expect(count == 0)
    await clock.advance(by: 1)
    #expect(count == 1)
    await clock.advance(by: .seconds(60))
    #expect(count == 1)

    retry.failed(Self.busy)
    await clock.advance(by: BusyRetry.delay)
    #expect(count == 2)
  }

  @Test func otherFailuresKeepTheirDelays() async {
    let retry = makeRetry()
    retry.failed(KizunaSyncError.engine(code: "REMOTE", message: "unreachable"))
    retry.failed(CancellationError())
    await clock.advance(by: .seconds(60))
    #expect(count == 0)
  }

  @Test func nothingIsAskedForAfterTheEnd() async {
    let retry = makeRetry()
    retry.failed(Self.busy)
    retry.end()
    retry.failed(Self.busy)
    await clock.advance(by: .seconds(60))
    #expect(count == 0)
  }
}
