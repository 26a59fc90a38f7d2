/// The grammar of a pull cursor (Kizuna wire contract §3.1). The client echoes cursors and looks into none.
enum CursorToken {
  static func isWellFormed(_ text: String) -> Bool {
    let halves = text.split(separator: "~", omittingEmptySubsequences: false)
    guard halves.count <= 2 else { return false }
    let marks = halves[0].split(separator: ":", omittingEmptySubsequences: false)
    guard marks.count <= 2, marks.allSatisfy({ isDecimal($0) }) else { return false }
    guard halves.count == 2 else { return true }
    return halves[1].split(separator: ".", omittingEmptySubsequences: false).allSatisfy { isDecimal($0) && $0 != "0" }
  }

  private static func isDecimal(_ text: Substring) -> Bool {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return false }
    return text == "0" || text.first != "0"
  }
}
