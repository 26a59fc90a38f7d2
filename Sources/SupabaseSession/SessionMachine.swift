import HostKit

/// Decides when a token is good enough, when to get another and how, and when to wait. Pure: no clock, no I/O.
///
/// At most one attempt is under way: `demand`, `wake` and `poke` start one only when there is none, and every attempt ends
/// with exactly one of `received`, `refused` and `failed`.
struct SessionMachine: Sendable, Equatable {
  /// Where tokens come from.
  enum Source: Sendable, Equatable {
    /// Somebody else makes them; they can only be read again.
    case reader
    /// The server gives them for a password or a refresh token.
    case server(hasPassword: Bool)
  }

  /// How an attempt gets a token.
  enum Way: Sendable, Equatable {
    case read
    case signIn
    case refresh(Secret)
  }

  enum Answer: Sendable, Equatable {
    case token(AccessToken)
    case failure(SessionFailure)
    /// An attempt is under way; its end answers.
    case wait
    /// The caller is to start this attempt and then wait for it.
    case attempt(Way)
  }

  private let source: Source
  private(set) var token: AccessToken?
  /// The server refused `token` although its time is not over.
  private(set) var isRefused = false
  /// Somebody needs another token than the present one and got none yet: attempts go on although `token` looks good.
  private(set) var isWanted = false
  private(set) var refreshToken: Secret?
  private(set) var isAttempting = false
  /// Of the last attempt; nil after a success.
  private(set) var failure: SessionFailure?
  private(set) var streak = 0
  /// No attempt before, on the scale of the clock.
  private(set) var notBefore: UInt64 = 0
  /// When a refused token last led to an attempt.
  private var refusalAt: UInt64?
  /// The current token's end was announced.
  private(set) var isWithdrawn = false
  /// When the attempt under way began, or the last one.
  private var attemptBegan: UInt64 = 0
  /// When another token than a good one was asked for lately, oldest first.
  private var forcedAt: [UInt64] = []
  /// These credentials were good once.
  private var hasWorked = false
  /// Refusals in a row of which each may have been a passing fault.
  private var doubts = 0
  /// The newest refusal.
  private var refusedAt: UInt64 = 0

  static let firstDelay: UInt64 = .seconds(1)
  static let longestDelay: UInt64 = .seconds(30)
  /// What nobody but a person can change is tried this rarely, give or take half.
  static let slowDelay: UInt64 = .seconds(300)
  /// A token refused this soon after the last refusal is not replaced at once: the fault is not the token.
  static let refusalWindow: UInt64 = .seconds(60)
  /// As often a token that looks good is replaced within that window because somebody asks for another.
  static let forcedPerWindow = 3
  /// Credentials that were good may be refused by what passes: a firewall's page, a redirect, a server that is being
  /// replaced. So after the first refusals the pauses are these, doubled each time, give or take.
  static let doubtDelay: UInt64 = .seconds(5)
  static let mostDoubts = 3
  /// So long without a refusal, and the next one is doubted again.
  static let doubtWindow: UInt64 = .seconds(600)
  /// An attempt may take so long before the end of a token that is over meanwhile is announced.
  static let attemptPatience: UInt64 = .seconds(5)

  init(_ source: Source, refreshToken: Secret? = nil) {
    self.source = source
    self.refreshToken = refreshToken
  }

  // MARK: Questions

  func isUsable(at now: UInt64) -> Bool {
    guard let token else { return false }
    return !isRefused && now < token.expiresAt
  }

  /// The token when nothing speaks against it.
  func freshToken(at now: UInt64) -> AccessToken? {
    guard let token, !isRefused, now < token.refreshAt else { return nil }
    return token
  }

  private var way: Way? {
    switch source {
    case .reader: .read
    case .server(let hasPassword): refreshToken.map(Way.refresh) ?? (hasPassword ? .signIn : nil)
    }
  }

  private static let noCredentials = SessionFailure(
    .authentication, "there is neither a refresh token nor a password to sign in with")

  /// When an attempt is due of its own accord; nil when only an event from outside can bring one.
  private var nextAttempt: UInt64? {
    guard !isAttempting, way != nil else { return nil }
    guard let token else { return failure == nil ? nil : notBefore }
    if isRefused || isWanted { return notBefore }
    return token.refreshAt == .max ? nil : max(token.refreshAt, notBefore)
  }

  /// When `wake` or `withdrawIfOver` has something to do next.
  var nextWake: UInt64? {
    [nextAttempt, isWithdrawn ? nil : endOfToken].compactMap(\.self).min()
  }

  /// When the present token counts as over; nil without an end. While another may come any moment it has a little longer.
  private var endOfToken: UInt64? {
    guard let token, token.expiresAt != .max else { return nil }
    return isAttempting ? max(token.expiresAt, attemptBegan + Self.attemptPatience) : token.expiresAt
  }

  // MARK: Events

  /// Somebody needs a token; `force`: another one than the present.
  mutating func demand(at now: UInt64, force: Bool = false) -> Answer {
    if !force, let token = freshToken(at: now) { return .token(token) }
    if force { isWanted = token != nil }
    if isAttempting { return .wait }
    if now < notBefore, let failure {
      if !force, isUsable(at: now), let token { return .token(token) }
      return .failure(failure)
    }
    if force, freshToken(at: now) != nil, let failure = forcedTooOften(at: now) { return .failure(failure) }
    return begin(at: now)
  }

  /// Counts a good token that is to be replaced; the fault of the third in a minute is not the token.
  private mutating func forcedTooOften(at now: UInt64) -> SessionFailure? {
    forcedAt.removeAll { $0 + Self.refusalWindow <= now }
    guard forcedAt.count < Self.forcedPerWindow else {
      isWanted = false
      return SessionFailure(.authentication, "access tokens are refused although they are new")
    }
    forcedAt.append(now)
    return nil
  }

  private mutating func begin(at now: UInt64) -> Answer {
    guard let way else {
      let failure = failure ?? Self.noCredentials
      self.failure = failure
      return .failure(failure)
    }
    isAttempting = true
    attemptBegan = now
    return .attempt(way)
  }

  /// The timer of `nextWake` fired.
  mutating func wake(at now: UInt64) -> Way? {
    guard let due = nextAttempt, due <= now, case .attempt(let way) = begin(at: now) else { return nil }
    return way
  }

  /// Something changed that makes an early attempt worthwhile: the network is back, a file was written.
  /// - Parameter any: also after an authentication or configuration failure.
  mutating func poke(at now: UInt64, any: Bool) -> Way? {
    if any { forcedAt = [] }
    guard !isAttempting, let failure, any || failure.kind == .transient else { return nil }
    notBefore = 0
    guard freshToken(at: now) == nil, case .attempt(let way) = begin(at: now) else { return nil }
    return way
  }

  /// The token's file was written.
  mutating func sourceChanged() -> Way? {
    guard source == .reader, !isAttempting else { return nil }
    notBefore = 0
    isAttempting = true
    return .read
  }

  /// The server refused this token.
  /// - Returns: the attempt to start at once.
  mutating func invalidate(_ value: String, at now: UInt64, draw: Double) -> Way? {
    guard let token, token.value == value, !isRefused else { return nil }
    isRefused = true
    if isAttempting { return nil }
    let isRepeated = refusalAt.map { now < $0 + Self.refusalWindow } ?? false
    refusalAt = now
    if isRepeated {
      let failure = SessionFailure(.authentication, "the server refuses access tokens although they are new")
      note(failure, at: now, draw: draw)
      return nil
    }
    notBefore = 0
    guard case .attempt(let way) = begin(at: now) else { return nil }
    return way
  }

  /// What an earlier run of the process left.
  mutating func restore(_ token: AccessToken?, refreshToken: Secret) {
    hasWorked = true
    self.token = token
    self.refreshToken = refreshToken
  }

  /// The attempt brought a token.
  /// - Returns: whether it is another token than before.
  @discardableResult
  mutating func received(_ new: AccessToken, refreshToken: Secret?, at now: UInt64, draw: Double) -> Bool {
    isAttempting = false
    if source == .reader, new.value == token?.value || now >= new.expiresAt {
      return receivedOld(new, at: now, draw: draw)
    }
    token = new
    hasWorked = true
    if now >= refusedAt.addingClamped(Self.doubtWindow) { doubts = 0 }
    isRefused = false
    isWanted = false
    isWithdrawn = false
    failure = nil
    // A server that does not rotate sends none; the old one stays good then.
    if case .server = source, let refreshToken { self.refreshToken = refreshToken }
    if new.expiresAt < now + Self.firstDelay {
      // Using it would mean asking again at once, without end.
      note(SessionFailure(.transient, "the server gives access tokens that are over at once"), at: now, draw: draw)
      return true
    }
    streak = 0
    notBefore = 0
    return true
  }

  /// What was read is the token we had, or one whose time is over.
  private mutating func receivedOld(_ new: AccessToken, at now: UInt64, draw: Double) -> Bool {
    let isOver = now >= new.expiresAt
    if let token, new.value == token.value {
      if freshToken(at: now) != nil {
        // There is no other one until somebody writes it.
        isWanted = false
        failure = nil
        streak = 0
        notBefore = 0
        return false
      }
      if !isOver, !isRefused {
        // Near its end, but good; it is read again now and then until somebody replaces it.
        failure = SessionFailure(.authentication, "the access token is about to expire and was not replaced")
        notBefore = now + Self.longestDelay
        return false
      }
    } else {
      token = nil
      isRefused = false
    }
    note(
      SessionFailure(
        .authentication,
        isOver ? "the access token has expired; replace it" : "the server refused the access token; replace it"),
      at: now, draw: draw)
    return false
  }

  /// The server refused the credentials of this attempt.
  /// - Returns: the attempt to go on with: a password outlives its refresh tokens.
  mutating func refused(_ failure: SessionFailure, way: Way, at now: UInt64, draw: Double) -> Way? {
    if case .refresh(let used) = way {
      if refreshToken == used { refreshToken = nil }
      if let next = self.way { return next }
    }
    self.failed(failure, at: now, draw: draw)
    return nil
  }

  mutating func failed(_ failure: SessionFailure, at now: UInt64, draw: Double) {
    isAttempting = false
    note(failure, at: now, draw: draw)
  }

  private mutating func note(_ failure: SessionFailure, at now: UInt64, draw: Double) {
    self.failure = failure
    streak = min(streak + 1, 32)
    let draw = min(max(draw, 0), 1)
    switch failure.kind {
    case .transient, .stopped:
      let full = min(Self.firstDelay << UInt64(min(streak - 1, 10)), Self.longestDelay)
      let delay = full / 2 + UInt64(Double(full / 2) * draw)
      notBefore = now + max(delay, min(failure.retryAfter ?? 0, Self.slowDelay))
    case .authentication, .configuration:
      let full = doubtDelay() ?? Self.slowDelay
      notBefore = now + full / 2 + UInt64(Double(full) * draw)
      refusedAt = now
    }
  }

  /// The pause after a refusal that may have been a passing fault; nil when it is to be believed.
  private mutating func doubtDelay() -> UInt64? {
    guard hasWorked, case .server = source, doubts < Self.mostDoubts else { return nil }
    doubts += 1
    return Self.doubtDelay << UInt64(doubts - 1)
  }

  /// Whether the end of the token is to be announced now: it is over, and there is no other. True once.
  mutating func withdrawIfOver(at now: UInt64) -> Bool {
    guard token != nil, !isWithdrawn else { return false }
    let isOver = endOfToken.map { now >= $0 } ?? false
    guard isOver || !isAttempting && isRefused && failure?.kind == .authentication else { return false }
    isWithdrawn = true
    return true
  }

  /// The calendar says that the token is over although the clock that counts its life does not: that clock may have
  /// stood still with the machine.
  mutating func calendarSaysExpired(at now: UInt64) -> Way? {
    guard !isAttempting, case .server = source, now >= notBefore else { return nil }
    guard case .attempt(let way) = begin(at: now) else { return nil }
    return way
  }
}
