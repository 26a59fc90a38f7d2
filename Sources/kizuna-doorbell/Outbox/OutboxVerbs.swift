import HostKit
import KizunaDoorbell
import KizunaSync

/// `outbox list`, `outbox retry` and `outbox discard`: the writes on their way, and those that did not arrive.
///
/// They take no lock and work beside a `run`, which is woken when there is something to send.
enum OutboxVerbs {
  static let commands = [list, retry, discard]

  private static let json = OptionSpecification.flag("json", "print one JSON object")
  private static let choice: [OptionSpecification] = [
    .value("id", "MUTATION", "the id of a refused write, as list shows it", repeatable: true),
    .flag("all", "all refused writes"),
  ]

  // MARK: list

  private static let list = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell outbox list",
      summary:
        "Shows the writes that wait, those refused or given up, and rows of the server that this database cannot take.",
      options: [
        ConfigurationOption.option.required, .flag("dismissed", "also the refused writes that were dismissed"),
        .flag("values", "also what the refused writes would have written"), json,
      ] + LogOutput.options)
  ) { arguments in
    let configuration = try ConfigurationOption.load(arguments, log: LogOutput.log(from: arguments), signsIn: false)
    // Nothing else runs in this process, so the reads may block.
    let listing = OutboxListing(
      captured: try KizunaSyncOutbox.captured(databasePath: configuration.database),
      queued: try KizunaSyncOutbox.queued(databasePath: configuration.database),
      refused: try KizunaSyncOutbox.refused(
        databasePath: configuration.database, includeDismissed: arguments.flag("dismissed")),
      parked: try KizunaSyncOutbox.parked(databasePath: configuration.database),
      showsValues: arguments.flag("values"), now: SystemClock.shared.wallMilliseconds)
    if arguments.flag("json") {
      StandardStreams.print(JSONWriter.text(listing.json))
    } else {
      for line in listing.text { StandardStreams.print(line) }
    }
    return .ok
  }

  // MARK: retry

  private static let retry = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell outbox retry",
      summary: "Queues refused writes again, over the rows as they are now.",
      options: [ConfigurationOption.option.required] + choice + [json] + LogOutput.options)
  ) { arguments in
    let log = LogOutput.log(from: arguments)
    let configuration = try ConfigurationOption.load(arguments, log: log, signsIn: false)
    let outcome = try KizunaSyncOutbox.retry(ids(arguments), config: configuration.clientConfiguration)
    if !outcome.retried.isEmpty, let pid = RunningGateway.wake(database: configuration.database) {
      log.info("outbox.woke_run", ["pid": .int(Int(pid))])
    }
    return OutboxReport(outcome).print(arguments)
  }

  // MARK: discard

  private static let discard = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell outbox discard",
      summary: "Gives refused writes up: they are not listed any more.",
      options: [ConfigurationOption.option.required] + choice + [json] + LogOutput.options)
  ) { arguments in
    let configuration = try ConfigurationOption.load(arguments, log: LogOutput.log(from: arguments), signsIn: false)
    let outcome = try KizunaSyncOutbox.discard(ids(arguments), databasePath: configuration.database)
    return OutboxReport(outcome).print(arguments)
  }

  /// - Returns: nil for all.
  private static func ids(_ arguments: Arguments) throws(UsageError) -> [String]? {
    let ids = arguments.values("id")
    guard ids.isEmpty == arguments.flag("all") else {
      throw UsageError(
        ids.isEmpty
          ? "--id is missing: --id MUTATION, or --all for all of them" : "--id and --all exclude each other")
    }
    return ids.isEmpty ? nil : ids.map { $0.lowercased() }
  }
}
