import HostKit
import KizunaDoorbell

/// `run`: the gateway in the foreground.
enum RunVerb {
  static let command = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell run",
      summary: "Keeps the replica in step until SIGINT or SIGTERM; SIGHUP wakes it.",
      options: [ConfigurationOption.option.required] + LogOutput.options), run: run)

  /// After a signal everything is over within this time, whatever hangs. Ending in the middle loses nothing: it is what
  /// happens when the power fails.
  private static let stopDeadline: UInt64 = .seconds(9)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let log = LogOutput.log(from: arguments)
    let configuration = try ConfigurationOption.load(arguments, log: log)
    let gateway = Gateway(configuration, log: log)
    ProcessSignals.shared.onWake { gateway.wake() }
    // Stopping is the usual end of a service, also while it waits for a server that does not answer its sign-in.
    ProcessSignals.shared.onStop {
      log.info("gateway.stopped")
      ProcessEnd.exit(.ok)
    }
    try await gateway.start(isWokenByHangup: true)
    let end = await firstEnd(of: gateway)
    let watchdog = SystemClock.shared.schedule(after: stopDeadline) {
      log.warning("gateway.stop_overdue")
      ProcessEnd.exit(end?.exitCode ?? .ok)
    }
    await gateway.stop()
    watchdog.cancel()
    if let end { throw end }
    return .ok
  }

  /// Waits until the process is told to stop, which is the usual end, or until the gateway cannot go on.
  private static func firstEnd(of gateway: Gateway) async -> GatewayError? {
    let (ends, continuation) = AsyncStream.makeStream(of: GatewayError?.self)
    ProcessSignals.shared.onStop {
      ProcessSignals.shared.onStop { ProcessEnd.exit(.interrupted) }
      continuation.yield(nil)
    }
    gateway.onEnd { continuation.yield($0) }
    for await end in ends { return end }
    return nil
  }
}
