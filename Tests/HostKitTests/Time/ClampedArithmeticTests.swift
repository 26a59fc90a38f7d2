import HostKit
import Testing

@Suite struct ClampedArithmeticTests {
  @Test func itStopsAtTheEnds() {
    #expect(Int64.max.addingClamped(1) == .max)
    #expect(Int64.min.addingClamped(-1) == .min)
    #expect(Int64.min.addingClamped(.max) == -1)
    #expect(Int64.min.subtractingClamped(1) == .min)
    #expect(Int64(0).subtractingClamped(.min) == .max)
    #expect(Int64.max.subtractingClamped(-1) == .max)
    #expect(Int64.min.multipliedClamped(by: 1000) == .min)
    #expect(Int64.min.multipliedClamped(by: -1) == .max)
    #expect(Int64.max.multipliedClamped(by: -2) == .min)
    #expect(UInt64.max.addingClamped(1) == .max)
    #expect(UInt64(1).subtractingClamped(2) == 0)
    #expect(UInt64.max.multipliedClamped(by: 2) == .max)
  }

  @Test func insideTheyAreTheOperators() {
    for left in Int64(-20)...20 {
      for right in Int64(-20)...20 {
        #expect(left.addingClamped(right) == left + right)
        #expect(left.subtractingClamped(right) == left - right)
        #expect(left.multipliedClamped(by: right) == left * right)
      }
    }
  }
}
