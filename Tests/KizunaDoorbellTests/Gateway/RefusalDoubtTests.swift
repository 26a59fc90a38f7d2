import HostKit
import Testing

@testable import KizunaDoorbell

@Suite struct RefusalDoubtTests {
  private enum Event {
    case waiting(UInt64), going(UInt64), pulled(UInt64)
  }

  /// The seconds at which a pull cast doubt.
  private func doubts(_ events: [Event]) -> [UInt64] {
    var doubt = RefusalDoubt()
    return events.compactMap { event in
      switch event {
      case .waiting(let at): doubt.connectionChanged(isWaiting: true, at: at * 1_000_000_000)
      case .going(let at): doubt.connectionChanged(isWaiting: false, at: at * 1_000_000_000)
      case .pulled(let at): return doubt.pulled(at: at * 1_000_000_000) ? at : nil
      }
      return nil
    }
  }

  @Test func onlyAPullLongAfterTheRefusalCastsDoubt() {
    #expect(
      doubts([
        .pulled(1_000), .waiting(1_000), .pulled(1_299), .waiting(1_299), .pulled(1_300), .pulled(1_301),
        .pulled(1_600),
      ]) == [1_300, 1_600])
  }

  @Test func aConnectionThatGoesOnIsNotDoubted() {
    #expect(doubts([.waiting(0), .going(10), .pulled(1_000), .waiting(1_000), .pulled(1_100)]) == [])
  }
}
