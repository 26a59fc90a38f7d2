/// Tells a transfer that gets on from one that a server never ends, without looking into its cursors. A value without I/O.
struct TransferProgress: Equatable {
  enum Fault: Error, Equatable {
    /// The same cursor again and again: nothing more arrives until the server goes on.
    case standsStill
    /// A cursor that was there before: the same pages come again.
    case goesInCircles
    /// So many pages without a row in a row, or so many in one run.
    case neverEnds(pages: Int)
    /// The checkpoint was said to have expired once more, though everything is being read from the start.
    case expiresAgain
  }

  /// Answers in a row that bring a transfer no further before the run ends. A server that waits for a transaction of
  /// somebody else answers so.
  static let patience = 3
  /// Pages without a row are what a server sends that looks through rows of others; each stands for thousands of them.
  static let longestEmptyStretch = 10_000
  static let mostPages = 100_000

  private var cursor: String?
  private var standstill = 0
  private var empty = 0
  private var pages = 0
  private var hasExpired = false
  /// A cursor of this transfer that later ones are compared with, and after how many pages it is changed for another: twice
  /// as many each time, so that a circle of any length is found.
  private var landmark: String?
  private var steps = 0
  private var reach = 1

  /// A page that says that more is to come.
  /// - Returns: whether the page is new, and not the last one again.
  /// - Throws: `Fault`.
  mutating func goOn(asked: String, next: String, isEmpty: Bool) throws(Fault) -> Bool {
    // Somebody made the transfer start over in between.
    if let cursor, asked != cursor { startOver() }
    cursor = next
    pages += 1
    if pages >= Self.mostPages { throw .neverEnds(pages: pages) }
    guard next != asked else {
      standstill += 1
      if standstill >= Self.patience { throw .standsStill }
      return false
    }
    standstill = 0
    if next == landmark { throw .goesInCircles }
    steps += 1
    if steps == reach { (landmark, steps, reach) = (next, 0, reach * 2) }
    empty = isEmpty ? empty + 1 : 0
    if empty >= Self.longestEmptyStretch { throw .neverEnds(pages: empty) }
    return true
  }

  /// The server has forgotten the checkpoint; the next transfer begins at the start, and that cannot be forgotten.
  /// - Throws: `Fault`, the second time.
  mutating func expire() throws(Fault) {
    if hasExpired { throw .expiresAgain }
    hasExpired = true
    startOver()
  }

  private mutating func startOver() {
    (cursor, landmark) = (nil, nil)
    (standstill, empty, steps, reach) = (0, 0, 0, 1)
  }
}

extension RemoteFailure {
  /// A transfer that brings nothing and does not end.
  init(_ fault: TransferProgress.Fault) {
    let what =
      switch fault {
      case .standsStill:
        "says that more is to come (has_more) and does not send it: its cursor stays where it is. Either a transaction on "
          + "the server has been open for long, or the function is at fault; until then nothing new arrives"
      case .goesInCircles:
        "says that more is to come (has_more) and comes back to a cursor it had sent before, so it never ends; that is a "
          + "fault of the server's function"
      case .neverEnds(let pages):
        "has sent \(pages) pages and still says that more is to come (has_more); look whether the server's function ever ends"
      case .expiresAgain:
        "says once more that the cursor has expired (CHECKPOINT_EXPIRED), though everything is being read from the start, "
          + "which cannot expire; that is a fault of the server's function"
      }
    self.init(.malformed, KizunaSyncError(.remote, "kizunasync.pull \(what)"))
  }
}
