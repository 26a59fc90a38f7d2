/// The grammar of a pull cursor (Kizuna wire contract §3.1). The client echoes cursors and looks into none, but keeps only
/// those that a server can read again.
enum CursorToken {
  static func isWellFormed(_ text: String) -> Bool {
    let halves = text.utf8.split(separator: UInt8(ascii: "~"), omittingEmptySubsequences: false)
    guard halves.count <= 2 else { return false }
    let marks = halves[0].split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).map(number)
    guard marks.count <= 2, let first = marks.first, first != nil, let highWater = marks[marks.count - 1] else {
      return false
    }
    guard halves.count == 2 else { return true }
    var last: Int64 = 0
    for part in halves[1].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
      guard let hole = number(part), hole > last, hole < highWater else { return false }
      last = hole
    }
    return true
  }

  /// Seqs are PostgreSQL's bigint, written in one way only.
  private static func number(_ text: Substring.UTF8View) -> Int64? {
    guard text.count <= 19, let first = text.first, first != UInt8(ascii: "0") || text.count == 1 else { return nil }
    guard text.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int64(Substring(text))
  }
}
