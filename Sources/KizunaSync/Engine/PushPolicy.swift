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
  /// How often a smaller request may follow at once in a run, after one that was too slow.
  static let slowRequests = 3
  /// Requests in a row that were too slow, in this run.
  private var slow = 0

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
    case .unreachable where failure.isTooSlow && !isGroup && count > 1:
      slice = max(1, count / 2)
      bytes = size / 2
      // Each costs the whole time a request has, and a server that hangs answers none of them.
      slow += 1
      return slow > Self.slowRequests ? .fail : .resend
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
    slow = 0
  }

  /// A run begins. What was too slow in the last one is not sent again as it was.
  mutating func begin() {
    slow = 0
  }
}

/// The page size to ask for. Halved when a page was too large or came too slowly, doubled back by pages that were not.
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

  /// Pages in a row that came too slowly, in this run.
  private var slow = 0

  /// A run begins.
  mutating func begin() { slow = 0 }

  /// A page did not come in the time a request has.
  /// - Returns: whether to ask for a smaller one at once.
  mutating func tooSlow() -> Bool {
    slow += 1
    return halve() && slow <= PushPolicy.slowRequests
  }

  /// - Returns: false when a page of one row is too large already.
  mutating func halve() -> Bool {
    let current = value ?? Self.assumed
    guard current > 1 else { return false }
    reduced = current / 2
    return true
  }

  mutating func succeeded() {
    slow = 0
    guard let current = reduced else { return }
    let next = current * 2
    reduced = next >= configured ?? Self.assumed ? nil : next
  }
}
