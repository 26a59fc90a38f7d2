/// How much to send at once, and what a failure means for it (Kizuna wire contract §13.8). A value without I/O.
struct PushPolicy: Equatable {
  static let largestSlice = 500
  /// Permanent failures in a row after which a write is given up.
  static let budget = 5

  /// The most ungrouped writes of the next request.
  private(set) var slice = largestSlice
  /// Set by a server that said how large is too large; held until the queue is empty.
  private var cap = largestSlice

  enum Reaction: Equatable {
    /// The slice is smaller now; send again at once.
    case resend
    /// The head alone failed for good: count it.
    case count
    /// There is nothing to try: give the head up.
    case giveUp(reason: String)
    /// Not the fault of what was sent.
    case fail
  }

  mutating func react(to failure: RemoteFailure, count: Int, isGroup: Bool) -> Reaction {
    switch failure.kind {
    case .permanent where isGroup && failure.serverCode == "KZP02":
      return .giveUp(reason: failure.error.message)
    case .permanent where failure.serverCode == "KZP02" && count > 1, .tooLarge where !isGroup && count > 1:
      slice = max(1, count / 2)
      cap = slice
      return .resend
    case .permanent where !isGroup && count > 1:
      slice = 1
      return .resend
    case .permanent, .tooLarge:
      return .count
    default:
      return .fail
    }
  }

  /// After an answer the slice grows again, so that one bad write does not make a request of each that follows.
  mutating func succeeded() {
    slice = min(cap, slice * 2)
  }
}

/// The page size to ask for. Halved when a page was too large, doubled back by pages that were not.
struct PageLimit: Equatable {
  /// What the app configured; nil leaves it to the server.
  let configured: Int?
  /// The server's default, where halving begins.
  static let assumed = 500
  private var reduced: Int?

  init(configured: Int?) {
    self.configured = configured
  }

  /// What to send as `limit`, if anything.
  var value: Int? { reduced ?? configured }

  /// A page of one row is asked for.
  var isSmallest: Bool { value == 1 }

  /// - Returns: false when a page of one row is too large already.
  mutating func halve() -> Bool {
    let current = value ?? Self.assumed
    guard current > 1 else { return false }
    reduced = current / 2
    return true
  }

  mutating func succeeded() {
    guard let current = reduced else { return }
    let next = current * 2
    reduced = next >= configured ?? Self.assumed ? nil : next
  }
}
