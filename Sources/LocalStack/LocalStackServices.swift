import HostKit
import SyncServer

/// The services of a development server, without sockets: sync, sign-in and their storage.
///
/// Everything that changes state runs on one thread, and is in the journal before it is answered.
public final class LocalStackServices: Sendable {
  public let configuration: LocalStackConfiguration
  public let tokens: StackTokens
  public let server: SyncServer
  let auth: AuthService
  private let sessions: MemoryAuthStore
  let rpc: RPCService
  /// Who can sign in, sorted by email.
  public let users: [StackUser]

  private let directory: StateDirectory?
  private let thread: SerialThread
  private let wallMilliseconds: @Sendable () -> Int64

  /// - Parameters:
  ///   - clock: gives the calendar time, and the delay after which the journal is forced to the disk.
  /// - Throws: `StateDirectoryError` when the directory of the configuration cannot be used.
  public init(
    _ configuration: LocalStackConfiguration, clock: any HostClock = SystemClock.shared, log: HostLog = .none
  ) throws(StateDirectoryError) {
    self.configuration = configuration
    let wall: @Sendable () -> Int64 = { clock.wallMilliseconds }
    wallMilliseconds = wall
    let thread = SerialThread(name: "kizuna-stack-db")
    self.thread = thread

    var state = SyncServerState(
      configuration: SyncServerConfiguration(tables: configuration.tables, expiresCursorsAhead: true), firstSeq: 1)
    var authState = AuthState()
    var directory: StateDirectory?
    if let path = configuration.directory {
      directory = try StateDirectory(path, clock: clock, thread: thread, log: log) { line in
        Self.replay(line, into: &state, and: &authState)
      }
    }
    self.directory = directory
    if state.isUntouched {
      let beginning = SyncServerState.beginning(at: wall())
      state.replay(beginning)
      try directory?.append(["s": .array(beginning.map(\.json))])
    }
    state.maintain(now: wall())
    let secret = try Self.secret(configuration, directory)
    tokens = StackTokens(secret: secret, issuedAt: wall() / 1000)

    server = SyncServer(
      state: state, thread: thread, wallMilliseconds: wall,
      journal: Self.journal(directory))
    let users = StackUsers(configuration.users)
    self.users = users.all
    sessions = MemoryAuthStore(
      users: users, state: authState, thread: thread,
      journal: { [directory] changes in try directory?.append(["a": .array(changes.map(\.json))]) })
    auth = AuthService(configuration: configuration, tokens: tokens, store: sessions, wallMilliseconds: wall)
    rpc = RPCService(server: server, tokens: tokens, wallMilliseconds: wall)
    foldLongJournal()
    maintainDaily(clock)
  }

  private func maintainDaily(_ clock: any HostClock) {
    clock.schedule(after: .seconds(86_400)) { [weak self] in
      guard let self else { return }
      // What the journal refuses is tried again tomorrow.
      Task { try? await self.server.maintain() }
      maintainDaily(clock)
    }
  }

  private static func secret(
    _ configuration: LocalStackConfiguration, _ directory: StateDirectory?
  ) throws(StateDirectoryError) -> String {
    func random() -> String { Base64.encode(Digest.random(32), .url) }
    if let given = configuration.jwtSecret { return given }
    return try directory?.secret("jwt-secret", make: random) ?? random()
  }

  private static func journal(_ directory: StateDirectory?) -> SyncServer.Journal? {
    guard let directory else { return nil }
    return { commit in try directory.append(["s": .array(commit.changes.map(\.json))]) }
  }

  private func foldLongJournal() {
    directory?.whenLong { [weak self] in
      Task { [weak self] in
        try await self?.compact()
        self?.foldLongJournal()
      }
    }
  }

  deinit { thread.stop() }

  /// Seconds since 1970.
  var now: Int64 { wallMilliseconds() / 1000 }

  private static func replay(
    _ line: JSONValue, into state: inout SyncServerState, and auth: inout AuthState
  ) -> Bool {
    for value in line["s"]?.arrayValue ?? [] {
      guard let change = StateChange(value) else { return false }
      state.replay(CollectionOfOne(change))
    }
    for value in line["a"]?.arrayValue ?? [] {
      guard let change = AuthChange(value) else { return false }
      auth.apply(change)
    }
    return line["s"] != nil || line["a"] != nil
  }

  /// Writes a snapshot and starts an empty journal; nothing else happens meanwhile.
  public func compact() async throws {
    guard let directory else { return }
    try await server.save(to: directory, auth: sessions)
  }

  /// Writes a snapshot and closes the directory. Nothing may be asked afterwards.
  public func close() async throws {
    defer { directory?.close() }
    try await compact()
  }
}

extension SyncServer {
  /// Writes the state of both services as one snapshot; they share the thread, so nothing comes in between.
  fileprivate func save(to directory: StateDirectory, auth: MemoryAuthStore) throws {
    let authChanges = auth.assumeIsolated { $0.changes }
    let state = snapshot()
    try directory.replaceSnapshot { line throws(StateDirectoryError) in
      try state.forEachChange { change throws(StateDirectoryError) in try line(["s": [change.json]]) }
      for change in authChanges { try line(["a": [change.json]]) }
    }
  }
}
