/// Durations in this package are `UInt64` nanoseconds; these spell them.
extension UInt64 {
  public static func seconds(_ value: Double) -> UInt64 { UInt64((value * 1e9).rounded()) }
  public static func milliseconds(_ value: Double) -> UInt64 { UInt64((value * 1e6).rounded()) }
  public var inSeconds: Double { Double(self) / 1e9 }
  public var inMilliseconds: Double { Double(self) / 1e6 }
}
