/// How much to send at once, and what a failure means for it (Kizuna wire contract §13.8). A value without I/O.
struct PushPolicy: Equatable {
  static let largestSlice = 500
  /// Permanent failures in a row after which a write is given up.
  static let budget = 5

  /// The most ungrouped writes of the next request.
  private(set) var slice = largestSlice
  /// About the most bytes of the next request, unless it is of one write; nil until a server found one too large. Held
  /// until the queue is empty, so that what was refused is not sent again with each slice that has grown back.
  private(set) var bytes: Int?
  /// Set by a server that said how many writes are too many; held until the queue is empty.
  private var cap = largestSlice

  enum Reaction: Equatable {
    /// The slice is smaller now; send again at once.
    case resend
    /// The head alone failed for good: count it.
    case count
    /// There is nothing to try: give the head up.
    case giveUp(Hopeless)
    /// Not the fault of what was sent.
    case fail
  }

  /// Why a smaller request is not possible.
  enum Hopeless: Equatable {
    case tooLarge, tooManyWrites
  }

  /// - Parameters:
  ///   - count: writes in the request that failed.
  ///   - bytes: its size.
  mutating func react(to failure: RemoteFailure, count: Int, isGroup: Bool, bytes size: Int) -> Reaction {
    switch failure.kind {
    case .permanent where isGroup && failure.serverCode == "KZP02":
      return .giveUp(.tooManyWrites)
    case .permanent where failure.serverCode == "KZP02" && count > 1:
      slice = max(1, count / 2)
      cap = slice
      return .resend
    case .tooLarge where !isGroup && count > 1:
      slice = max(1, count / 2)
      if failure.isRequestTooLarge { bytes = size / 2 }
      return .resend
    case .tooLarge where failure.isRequestTooLarge:
      // What is this small is refused for another reason, and whoever does so refuses everything.
      return size < RemoteFailure.surelySmall ? .fail : .giveUp(.tooLarge)
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
