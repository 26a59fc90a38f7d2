/// A number with its noun.
package enum Counted {
  package static func of(_ count: Int, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
  }

  /// The things themselves when they are few, else how many there are and the first of them.
  package static func list(_ things: [String], _ noun: String, atMost limit: Int = 3) -> String {
    guard things.count > limit else { return things.joined(separator: ", ") }
    return "\(of(things.count, noun)): \(things.prefix(limit).joined(separator: ", ")) and \(things.count - limit) more"
  }
}
