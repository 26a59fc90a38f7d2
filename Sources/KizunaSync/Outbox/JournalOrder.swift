/// Puts the journal rows of a key into the order in which the row changed.
///
/// SQLite lets the newest trigger fire first, and those of a connection before all others. A trigger of an app that fires
/// before ours changes the row, and its change is journalled, before the change that made it fire. The rows tell
/// themselves: each holds what the row was before and after it.
enum JournalOrder {
  typealias JournalRow = Harvest.JournalRow

  /// A row's place: its table and the cells of its key.
  struct Place: Hashable {
    var table: String
    var key: [SQLiteValue]
  }

  /// How far apart the changes of one statement are looked for where a batch ends.
  static let reach = 64

  /// - Parameter place: nil for rows that change their key or belong to no table: nothing is moved past those.
  static func sorted(_ rows: [JournalRow], place: (JournalRow) -> Place?) -> [JournalRow] {
    let places = rows.map(place)
    var newest: [Place: Int] = [:]
    var isSorted = true
    for (index, place) in places.enumerated() {
      guard let place else {
        newest = [:]
        continue
      }
      if let before = newest.updateValue(index, forKey: place), !follows(rows[index], rows[before]) { isSorted = false }
    }
    if isSorted { return rows }

    var result: [JournalRow] = []
    var earlier: [Place: [Int]] = [:]
    for (row, place) in zip(rows, places) {
      guard let place else {
        earlier = [:]
        result.append(row)
        continue
      }
      let indexes = earlier[place, default: []]
      guard let goal = goal(of: row, among: indexes.map { result[$0] }) else {
        earlier[place] = indexes + [result.count]
        result.append(row)
        continue
      }
      let index = indexes[goal]
      result.insert(row, at: index)
      for (other, indexes) in earlier { earlier[other] = indexes.map { $0 >= index ? $0 + 1 : $0 } }
      earlier[place]?.insert(index, at: goal)
    }
    return result
  }

  /// How many of `rows` may be taken without parting the changes of one statement.
  /// - Parameter count: how many are wanted; up to `reach` more are there to choose from.
  static func end(_ rows: [JournalRow], wanted count: Int, place: (JournalRow) -> Place?) -> Int {
    guard rows.count > count else { return rows.count }
    var newest: [Place: Int] = [:]
    for index in max(0, count - reach)..<count { if let place = place(rows[index]) { newest[place] = index } }
    var taken = Set(newest.keys)
    var left: [Place] = []
    var end = count
    for index in count..<rows.count {
      guard let place = place(rows[index]) else { continue }
      left.append(place)
      guard let before = newest.updateValue(index, forKey: place), taken.contains(place),
        !follows(rows[index], rows[before])
      else { continue }
      taken.formUnion(left)
      left = []
      end = index + 1
    }
    return end
  }

  /// Whether a change found the row as the other left it. No cells stand for no row.
  private static func follows(_ later: JournalRow, _ earlier: JournalRow) -> Bool { later.old == earlier.new }

  /// Where among the rows of its key a row belongs that does not follow the newest: before the first that found what it
  /// left, unless that parts two that follow one another.
  private static func goal(of row: JournalRow, among earlier: [JournalRow]) -> Int? {
    guard let newest = earlier.last, !follows(row, newest) else { return nil }
    return earlier.indices.first { index in
      follows(earlier[index], row) && (index == 0 || follows(row, earlier[index - 1]))
    }
  }
}
