import HostKit

/// Users of a configuration, and their sessions in memory and in a journal.
actor MemoryAuthStore: AuthStore {
  private let thread: SerialThread
  private let users: StackUsers
  private let journal: @Sendable ([AuthChange]) throws -> Void
  private var state: AuthState

  nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

  /// - Parameter journal: writes changes down before they take effect.
  init(
    users: StackUsers, state: AuthState, thread: SerialThread,
    journal: @escaping @Sendable ([AuthChange]) throws -> Void
  ) {
    self.users = users
    self.state = state
    self.thread = thread
    self.journal = journal
  }

  /// Everything that is remembered, for a snapshot.
  var changes: [AuthChange] { state.changes }

  func user(email: String, password: String) -> StackUser? { users.signIn(email: email, password: password) }

  func user(id: String) -> StackUser? { users.user(id: id) }

  func begin(session: String, of user: String, token: String, now: Int64) throws {
    try commit([
      .session(id: session, user: user), .token(token, RefreshToken(session: session, parent: nil, changedAt: now)),
    ])
  }

  func refresh(_ token: String, newToken: String, now: Int64, reuseInterval: Int64) throws -> AuthState.Refresh {
    let (outcome, changes) = state.refresh(token, newToken: newToken, now: now, reuseInterval: reuseInterval)
    try commit(changes)
    return outcome
  }

  func end(_ sessions: AuthEnding, of user: String) throws {
    let ended: [String]
    switch sessions {
    case .only(let session): ended = [session]
    case .allBut(let session): ended = state.sessions.filter { $0.value == user && $0.key != session }.map(\.key)
    case .all: ended = state.sessions.filter { $0.value == user }.map(\.key)
    }
    try commit(ended.sorted().map { .ended(session: $0) })
  }

  private func commit(_ changes: [AuthChange]) throws {
    guard !changes.isEmpty else { return }
    try journal(changes)
    for change in changes { state.apply(change) }
  }
}
