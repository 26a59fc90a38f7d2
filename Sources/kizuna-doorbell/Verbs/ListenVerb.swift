import HTTPClient
import HostKit
import KizunaDoorbell
import SupabaseRealtime

/// `listen`: the doorbell alone, without a database.
enum ListenVerb {
  static let command = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell listen",
      summary: "Prints one JSON line per state change and per ring; needs no database.",
      options: ListenTarget.options + LogOutput.options), run: run)

  private enum End: Sendable {
    case asked
    case failed(CommandFailure)
  }

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let log = LogOutput.log(from: arguments)
    let configuration = try arguments.value("config").map { _ in try ConfigurationOption.load(arguments, log: log) }
    let parts = GatewayParts.live(authorityFile: try ListenTarget.authorityFile(arguments, configuration))
    let (ends, continuation) = AsyncStream.makeStream(of: End.self)
    let hasStood = Locked(false)
    let failures = Locked(0)
    let target = try ListenTarget.resolve(arguments, configuration, http: parts.http, log: log) { failure in
      let count = failures.withLock { count -> Int in
        count += 1
        return count
      }
      guard !hasStood.withLock({ $0 }), let failure = ListenVerdict.failure(failure, count: count) else { return }
      continuation.yield(.failed(failure))
    }
    let connection = RealtimeConnection(
      target.realtime, transport: parts.realtime, credentials: target.credentials, log: log)
    ProcessSignals.shared.onStop { continuation.yield(.asked) }
    // Nobody is left to listen for.
    StandardStreams.onLostOutput { continuation.yield(.asked) }
    ProcessSignals.shared.onWake { connection.hint(.manual) }
    let clock = SystemClock.shared

    let subscription = try connection.subscribe(topics: target.topics) { ring in
      // On the transport's thread, so that lines have the order of the frames; it does not wait for who reads them.
      let time = clock.wallMilliseconds
      StandardStreams.printEvent(ListenLines.ring(ring, wallMilliseconds: time)) { count in
        ListenLines.dropped(count, wallMilliseconds: time)
      }
    }
    let states = Task {
      var lines = ListenLines()
      for await status in connection.statusUpdates {
        let time = clock.wallMilliseconds
        if let line = lines.state(status, now: clock.now, wallMilliseconds: time) {
          StandardStreams.printEvent(line) { count in ListenLines.dropped(count, wallMilliseconds: time) }
        }
        if status.topics.contains(where: { $0.state == .joined }) { hasStood.withLock { $0 = true } }
        guard !hasStood.withLock({ $0 }), let failure = ListenVerdict.failure(status) else { continue }
        continuation.yield(.failed(failure))
      }
    }
    connection.start()
    let tokens = await target.follow(connection)
    var end = End.asked
    for await first in ends {
      end = first
      break
    }
    subscription.cancel()
    tokens?.cancel()
    await connection.stop()
    states.cancel()
    await target.close()
    await parts.shutdown()
    if case .failed(let failure) = end { throw failure }
    return .ok
  }
}
