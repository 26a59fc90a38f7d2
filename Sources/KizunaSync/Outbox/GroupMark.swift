/// Where in the journal an all-or-nothing group began. Writers may use one name again and again; each time it is another
/// group, and goes by the name and the place where it began.
struct GroupMark: Equatable {
  /// What stands in the journal's `op` where a group begins; its table is empty.
  static let op = "g"

  var seq: Int64
  var name: String

  init(seq: Int64, name: String) {
    self.seq = seq
    self.name = name
  }

  /// - Parameter text: as `text` spells it; nil for any other.
  init?(_ text: String?) {
    guard let parts = text?.split(separator: "|", maxSplits: 1), parts.count == 2, let seq = Int64(parts[0]) else {
      return nil
    }
    self.init(seq: seq, name: String(parts[1]))
  }

  var text: String { "\(seq)|\(name)" }
  var group: String { "\(name)#\(seq)" }
}
