/// Finds what was probably meant by a misspelt name.
public enum NearestName {
  /// The candidate closest to `name`, when it is close enough to be worth proposing: at most a third of the letters
  /// differ, counting a swap of neighbours as one. Letter case does not count. Ties go to the earlier candidate.
  public static func among(_ candidates: some Sequence<String>, to name: String) -> String? {
    var best: (name: String, distance: Int)?
    for candidate in candidates {
      let limit = max(1, max(candidate.count, name.count) / 3)
      let found = distance(candidate.lowercased(), name.lowercased())
      if found <= limit, found < best?.distance ?? .max { best = (candidate, found) }
    }
    return best?.name
  }

  /// `; did you mean "x"?`, or nothing.
  public static func hint(_ candidates: some Sequence<String>, for name: String) -> String {
    among(candidates, to: name).map { "; did you mean \"\($0)\"?" } ?? ""
  }

  /// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
  static func distance(_ left: String, _ right: String) -> Int {
    let left = Array(left)
    let right = Array(right)
    var before: [Int] = []
    var previous = Array(0...right.count)
    for (row, letter) in left.enumerated() {
      var current = [row + 1]
      for (column, other) in right.enumerated() {
        var cost = min(previous[column] + (letter == other ? 0 : 1), previous[column + 1] + 1, current[column] + 1)
        if row > 0, column > 0, letter == right[column - 1], left[row - 1] == other {
          cost = min(cost, before[column - 1] + 1)
        }
        current.append(cost)
      }
      before = previous
      previous = current
    }
    return previous[right.count]
  }
}
