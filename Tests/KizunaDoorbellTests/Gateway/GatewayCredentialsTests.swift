import Glibc
import HTTPClient
import HostKit
import KizunaSync
import KizunaSyncTestSupport
import Testing

@testable import KizunaDoorbell

/// What a gateway does when the server refuses its credentials: at their first use it gives up, later it waits.
@Suite struct GatewayCredentialsTests {
  private static let user = "11111111-1111-4111-8111-111111111111"
  typealias Fault = @Sendable () throws -> HTTPResponse

  private static func answer(_ status: Int, _ code: String) -> Fault {
    { .json(["code": .string(code), "message": "scripted"], status: status) }
  }

  private static let refusal = answer(401, "PGRST301")

  /// Serves sync, unless there is a fault, and signs everybody in with a new token each time.
  private struct Project: HTTPTransport {
    let sync: SyncServerTransport
    /// How calls of sync are answered, and how often so; nil serves them.
    let fault = Locked<(answer: Fault, times: Int)?>(nil)
    let signIns = Locked(0)

    func fail(times: Int = .max, _ fault: @escaping Fault) {
      self.fault.withLock { $0 = (fault, times) }
    }

    nonisolated(nonsending) func send(_ request: HTTPRequest) async throws -> HTTPResponse {
      guard request.url.contains("/auth/v1/token") else {
        let fault = fault.withLock { fault -> Fault? in
          guard let (answer, times) = fault else { return nil }
          fault = times > 1 ? (answer, times - 1) : nil
          return answer
        }
        return if let fault { try fault() } else { try await sync.send(request) }
      }
      let number = signIns.withLock { count -> Int in
        count += 1
        return count
      }
      let token = TestToken.user(
        GatewayCredentialsTests.user, issuedAt: 1_000, expiresAt: 4_000_000_000, claims: ["n": .int(number)])
      return .json(
        ["access_token": .string(token), "refresh_token": .string("r\(number)"), "expires_in": 3_600], status: 200)
    }
  }

  private struct Fixture: Sendable {
    let folder: String
    let project: Project
    let gateway: Gateway
    let ends: AsyncStream<GatewayError>
    let events: AsyncStream<String>
    let sink: AsyncStream<String>.Continuation
    let hasEnded: Locked<Bool>

    /// Waits for an event of the log.
    func heard(_ event: String) async {
      for await name in events where name == event { return }
    }

    func write(token: String) throws {
      try DurableFile.replace(folder + "/token", with: Array(token.utf8))
    }
  }

  private func with(
    session: GatewayConfiguration.Session? = nil, path: (any KizunaSyncPathMonitor & Sendable)? = nil,
    _ body: (Fixture) async throws -> Void
  ) async throws {
    var template = Array("/tmp/kizuna-credentials-XXXXXX".utf8CString)
    _ = try #require(mkdtemp(&template))
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let tokenFile = folder + "/token"
    try DurableFile.replace(tokenFile, with: Array(Self.token(1).utf8))
    let project = Project(
      sync: SyncServerTransport(
        SyncServer(configuration: SyncServerConfiguration(tables: ["todos": SyncTable(bucketColumn: "owner_id")]))))
    let clock = VirtualClock()
    let configuration = GatewayConfiguration(
      url: try ServerURL("http://localhost"), publishableKey: ConfigurationSecret(literal: "key"),
      database: folder + "/a.db", tables: ["todos": TableDeclaration(bucket: .owner(column: "owner_id"))],
      session: try session ?? .accessToken(ConfigurationSecret(reading: .file(path: tokenFile))))
    let (events, sink) = AsyncStream.makeStream(of: String.self)
    let (ends, end) = AsyncStream.makeStream(of: GatewayError.self)
    let hasEnded = Locked(false)
    let gateway = Gateway(
      configuration,
      parts: GatewayParts(
        http: project, realtime: ScriptedTransport(clock: clock), clock: clock,
        pathMonitor: { path ?? OpenPath() }),
      log: HostLog(minimum: .debug) { _, event, _ in sink.yield(event) })
    gateway.onEnd {
      hasEnded.withLock { $0 = true }
      end.yield($0)
    }
    try await body(
      Fixture(
        folder: folder, project: project, gateway: gateway, ends: ends, events: events, sink: sink,
        hasEnded: hasEnded))
    await gateway.stop()
    _ = await (try ChildProcess(executable: "/bin/rm", arguments: ["-rf", folder])).ending()
  }

  private static func token(_ number: Int) -> String {
    TestToken.user(user, issuedAt: 1_000, expiresAt: 4_000_000_000, claims: ["n": .int(number)])
  }

  private final class OpenPath: KizunaSyncPathMonitor, Sendable {
    func start(onSatisfied: @escaping @Sendable (Bool) -> Void) { onSatisfied(true) }
    func cancel() {}
  }

  private final class ShutPath: KizunaSyncPathMonitor, Sendable {
    func start(onSatisfied: @escaping @Sendable (Bool) -> Void) { onSatisfied(false) }
    func cancel() {}
  }

  // MARK: The first use

  @Test func aTokenFileRefusedAtItsFirstUseEndsTheGateway() async throws {
    try await with { fixture in
      fixture.project.fail(Self.refusal)
      try await fixture.gateway.start()
      for await error in fixture.ends {
        #expect(error.kind == .authentication)
        #expect(error.message.contains("refused the access token"))
        break
      }
    }
  }

  @Test func aPasswordWhoseTokensAreRefusedEndsTheGateway() async throws {
    let session = GatewayConfiguration.Session.password(
      email: "ann@example.com", password: ConfigurationSecret(literal: "pw"))
    try await with(session: session) { fixture in
      fixture.project.fail(Self.refusal)
      try await fixture.gateway.start()
      for await error in fixture.ends {
        #expect(error.kind == .authentication)
        break
      }
    }
  }

  /// The first token may be the one an earlier process left; the second is the server's own.
  @Test func aPasswordDeservesASecondToken() async throws {
    let session = GatewayConfiguration.Session.password(
      email: "ann@example.com", password: ConfigurationSecret(literal: "pw"))
    try await with(session: session) { fixture in
      fixture.project.fail(times: 1, Self.refusal)
      try await fixture.gateway.start()
      await fixture.heard("gateway.synced")
      #expect(!fixture.hasEnded.withLock { $0 })
    }
  }

  /// A server that fails says nothing about the credentials, and neither does one that is not there.
  @Test func otherFailuresEndNothing() async throws {
    try await with { fixture in
      fixture.project.fail(Self.answer(500, "XX000"))
      try await fixture.gateway.start()
      await fixture.heard("gateway.sync_failed")
      fixture.project.fail { throw HTTPError(.connectionLost, "scripted") }
      fixture.gateway.wake()
      await fixture.heard("gateway.sync_failed")
      fixture.project.fail(Self.answer(403, "42501"))
      fixture.gateway.wake()
      await fixture.heard("gateway.sync_failed")
      #expect(!fixture.hasEnded.withLock { $0 })
      // Still the first use.
      fixture.project.fail(Self.refusal)
      fixture.gateway.wake()
      for await error in fixture.ends {
        #expect(error.kind == .authentication)
        break
      }
    }
  }

  // MARK: Later

  @Test func credentialsThatWereTakenOnceAreWaitedFor() async throws {
    try await with { fixture in
      try await fixture.gateway.start()
      await fixture.heard("gateway.synced")
      fixture.project.fail(times: 1, Self.refusal)
      fixture.gateway.wake()
      await fixture.heard("gateway.sync_failed")
      #expect(!fixture.hasEnded.withLock { $0 })
      let record = try #require(RunRecordFile.read(ofDatabase: fixture.folder + "/a.db"))
      #expect(record.processID == getpid())
      // The new token is enough: nothing else wakes the gateway, whose clock stands still.
      try fixture.write(token: Self.token(2))
      await fixture.heard("gateway.synced")
      #expect(!fixture.hasEnded.withLock { $0 })
    }
  }

  // MARK: What is noted for others

  @Test func aRunThatCannotBeginIsNotedAsOne() async throws {
    try await with(path: ShutPath()) { fixture in
      try await fixture.gateway.start(isWokenByHangup: true)
      let database = fixture.folder + "/a.db"
      let (signs, sign) = AsyncStream.makeStream(of: Void.self)
      let watch = try RunRecordFile.watch(database: database) { sign.yield() }
      defer { watch.cancel() }
      var asked = AskedRun(holder: getpid())
      sign.yield()
      loop: for await _ in signs {
        switch asked.step(RunRecordFile.read(ofDatabase: database)) {
        case .ask:
          asked.ask(at: SystemClock.monotonic)
          fixture.gateway.wake()
        case .failed(let error):
          #expect(error.kind == .unreachable)
          break loop
        case .wait, .waitForRelease: break
        case .refuse, .succeeded:
          Issue.record("a gateway without a network cannot have run")
          break loop
        }
      }
    }
  }
}
