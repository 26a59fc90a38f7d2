import HostKit

/// How far this host's calendar is from the server's.
struct ClockVerdict {
  /// Less than this is no difference worth a word, milliseconds.
  static let tolerance: Int64 = 5_000

  /// The server's `Date`, milliseconds since 1970; nil when it sent none.
  var server: Int64?
  /// This host's calendar when the request was sent and when the answer was there, milliseconds since 1970.
  var asked: Int64
  var answered: Int64

  /// Milliseconds by which the server's calendar is ahead of this host's, at least; 0 when the two may agree. The header
  /// leaves out the fraction of the second, and it is not known when between question and answer it was written.
  var offset: Int64 {
    guard let server else { return 0 }
    let (earliest, latest) = (server - answered, server + 999 - asked)
    return if earliest > 0 { earliest } else if latest < 0 { latest } else { 0 }
  }

  var finding: Finding {
    guard server != nil else { return .skipped(.clock, "the server does not tell the time") }
    guard abs(offset) > Self.tolerance else {
      return .ok(.clock, "this host's clock and the server's differ by less than \(Self.tolerance / 1000) s")
    }
    return .warning(
      .clock, "this host's clock is \(abs(offset) / 1000) s \(offset > 0 ? "behind" : "ahead of") the server's",
      remedy:
        "let the system set its clock, for example with timedatectl set-ntp true; no row depends on it, but tokens "
        + "and certificates do")
  }
}
