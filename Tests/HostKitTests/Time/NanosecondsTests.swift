import HostKit
import Testing

@Suite struct NanosecondsTests {
  @Test func spellsDurations() {
    #expect(UInt64.seconds(1.5) == 1_500_000_000)
    #expect(UInt64.milliseconds(0.25) == 250_000)
    #expect(UInt64.seconds(2).inMilliseconds == 2000)
    #expect(UInt64.milliseconds(500).inSeconds == 0.5)
  }
}
