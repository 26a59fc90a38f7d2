import Glibc
import HostKit
import KizunaSync
import KizunaSyncTestSupport
import Testing

@testable import KizunaDoorbell

/// A whole gateway on virtual time: session, client, scheduler and doorbell as `run` wires them, over a scripted project
/// and a scripted WebSocket server.
struct ScriptedGateway {
  let folder: String
  let clock: VirtualClock
  let project: ScriptedProject
  let transport: ScriptedTransport
  let gateway: Gateway
  let calendar: JumpingCalendar
  let hasEnded: Locked<Bool>

  /// Tells of jumps of the calendar, as the kernel does.
  final class JumpingCalendar: KizunaSyncForegroundSource, Sendable {
    private let onForeground = Locked<(@Sendable () -> Void)?>(nil)
    func start(onForeground: @escaping @Sendable () -> Void) { self.onForeground.withLock { $0 = onForeground } }
    func stop() { onForeground.withLock { $0 = nil } }
    func jumped() { onForeground.withLock { $0 }?() }
  }

  private final class OpenPath: KizunaSyncPathMonitor, Sendable {
    func start(onSatisfied: @escaping @Sendable (Bool) -> Void) { onSatisfied(true) }
    func cancel() {}
  }

  /// - Parameters:
  ///   - tokenFile: the token is read from the file `token` of the folder, which holds number 1; else a password signs in.
  ///   - pollInterval: nanoseconds.
  static func with(
    tokenFile: Bool = false, pollInterval: UInt64 = .seconds(3_600),
    _ body: (ScriptedGateway) async throws -> Void
  ) async throws {
    var template = Array("/tmp/kizuna-scripted-XXXXXX".utf8CString)
    _ = try #require(mkdtemp(&template))
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let clock = VirtualClock()
    let project = ScriptedProject(clock: clock)
    var session = GatewayConfiguration.Session.password(
      email: "ann@example.com", password: ConfigurationSecret(literal: "pw"))
    if tokenFile {
      try DurableFile.replace(folder + "/token", with: Array(project.token(1).utf8))
      session = .accessToken(try ConfigurationSecret(reading: .file(path: folder + "/token")))
    }
    let transport = ScriptedTransport(clock: clock)
    let calendar = JumpingCalendar()
    let hasEnded = Locked(false)
    let gateway = Gateway(
      GatewayConfiguration(
        url: try ServerURL("http://localhost"), publishableKey: ConfigurationSecret(literal: "key"),
        database: folder + "/a.db", tables: ["todos": TableDeclaration(bucket: .owner(column: "owner_id"))],
        session: session, pollInterval: pollInterval),
      parts: GatewayParts(
        http: project, realtime: transport, clock: clock, pathMonitor: { OpenPath() }, resumeSource: { calendar }))
    gateway.onEnd { _ in hasEnded.withLock { $0 = true } }
    clock.enroll(gateway.session.thread)
    let setting = ScriptedGateway(
      folder: folder, clock: clock, project: project, transport: transport, gateway: gateway, calendar: calendar,
      hasEnded: hasEnded)
    do {
      try await gateway.start()
      await setting.settle { gateway.connection.status.isReady }
      try await body(setting)
    } catch {
      await gateway.stop()
      throw error
    }
    await gateway.stop()
    _ = await (try ChildProcess(executable: "/bin/rm", arguments: ["-rf", folder])).ending()
  }

  /// Waits until the condition holds and no run is under way. Time stands still.
  func settle(until condition: () -> Bool = { true }, _ location: SourceLocation = #_sourceLocation) async {
    let holds = await clock.settle { condition() && gateway.scheduler.health().attemptStartedAt == nil }
    #expect(holds, sourceLocation: location)
    await clock.settle()
  }

  /// Lets time pass in small steps, so that runs on real threads keep up with it.
  func advance(_ seconds: Double, step: Double = 60) async {
    let end = clock.now + .seconds(seconds)
    while clock.now < end {
      await clock.advance(to: min(end, clock.now + .seconds(step)))
      await settle()
    }
  }
}
