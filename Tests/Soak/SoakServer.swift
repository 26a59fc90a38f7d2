import HostKit
import LocalStack
import SyncServer

/// The development server of a soak: its state is on disk, so it can go and come back at the same address.
final class SoakServer: Sendable {
  static let email = "soak@example.com"
  static let password = "soak-password"

  private let current: Locked<LocalStack>
  private let configuration: LocalStackConfiguration
  private struct State {
    var isAway = false
    var writesUnderWay = 0
    var repeatedJoins = 0
  }
  private let state = Locked(State())

  static func start(directory: String) async throws -> SoakServer {
    var configuration = LocalStackConfiguration(
      tables: ["todos": SyncTable(bucketColumn: "owner_id", includesKeyColumns: true)],
      users: [.init(email: email, password: password)])
    configuration.directory = directory
    return SoakServer(configuration, try await LocalStack.start(configuration))
  }

  private init(_ configuration: LocalStackConfiguration, _ stack: LocalStack) {
    self.configuration = configuration
    current = Locked(stack)
  }

  /// The one that runs, or that ran last.
  var stack: LocalStack { current.withLock { $0 } }

  /// Returns when nobody uses it any more and its port is free.
  func stop() async throws {
    let stack = stack
    state.withLock { $0.isAway = true }
    while state.withLock({ $0.writesUnderWay > 0 }) {
      try await SystemClock.shared.sleep(nanoseconds: .milliseconds(1))
    }
    let counts = await stack.realtimeCounts
    state.withLock { $0.repeatedJoins += counts.repeatedJoins }
    try await stack.stop()
  }

  func start() async throws {
    var options = LocalStack.Options()
    options.port = stack.port
    let started = try await LocalStack.start(configuration, options: options)
    current.withLock { $0 = started }
    state.withLock { $0.isAway = false }
  }

  func restart() async throws {
    try await stop()
    try await start()
  }

  var isAway: Bool { state.withLock { $0.isAway } }

  /// Joins of topics that were joined already, over all its lives.
  var repeatedJoins: Int {
    get async {
      let (before, isAway) = state.withLock { ($0.repeatedJoins, $0.isAway) }
      return isAway ? before : await before + stack.realtimeCounts.repeatedJoins
    }
  }

  /// Another device of the user writes.
  ///
  /// - Returns: false while the server is away.
  @discardableResult
  func write(_ key: String) async throws -> Bool {
    let isHere = state.withLock { state -> Bool in
      if !state.isAway { state.writesUnderWay += 1 }
      return !state.isAway
    }
    guard isHere else { return false }
    defer { state.withLock { $0.writesUnderWay -= 1 } }
    let stack = stack
    try await stack.server.upsert(
      "todos", key, ["owner_id": .string(stack.users[0].id), "title": .string(key), "done": .bool(false)])
    return true
  }
}
