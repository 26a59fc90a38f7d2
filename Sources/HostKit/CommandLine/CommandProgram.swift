import Glibc

/// A command with what it does.
public struct Command: Sendable {
  public let specification: CommandSpecification
  public let run: @Sendable (Arguments) async throws -> ExitCode

  public init(_ specification: CommandSpecification, run: @escaping @Sendable (Arguments) async throws -> ExitCode) {
    self.specification = specification
    self.run = run
  }
}

/// An executable: one command, or several verbs. Errors are printed once, here, as `name: sentence`.
public struct CommandProgram: Sendable {
  public let name: String
  public let summary: String
  /// Each with its name: one word, or two for the members of a group.
  private let verbs: [(name: String, command: Command)]
  private let only: Command?
  /// Turns errors of libraries into exit codes and sentences; nil leaves them to the rules below.
  private let explain: @Sendable (any Error) -> CommandFailure?

  /// A program with verbs, named by what follows the program's name in their invocation: `status`, or `outbox list`.
  public init(
    name: String, summary: String, verbs: [Command],
    explain: @escaping @Sendable (any Error) -> CommandFailure? = { _ in nil }
  ) {
    self.name = name
    self.summary = summary
    self.verbs = verbs.map { command in
      (command.specification.invocation.split(separator: " ").dropFirst().joined(separator: " "), command)
    }
    only = nil
    self.explain = explain
  }

  /// A program that is one command.
  public init(_ command: Command, explain: @escaping @Sendable (any Error) -> CommandFailure? = { _ in nil }) {
    name = command.specification.invocation
    summary = command.specification.summary
    verbs = []
    only = command
    self.explain = explain
  }

  public var help: String {
    """
    \(summary)

    usage: \(name) COMMAND [options]

    \(TextTable.columns(verbs.map { ($0.name, $0.command.specification.summary) }))

    \(name) COMMAND --help describes a command.
    """
  }

  /// Runs the program with the process's arguments and ends the process.
  public func main() async -> Never {
    exit(await run(Array(CommandLine.arguments.dropFirst())).rawValue)
  }

  /// - Parameter arguments: without the program's name.
  public func run(_ arguments: [String]) async -> ExitCode {
    let code = await outcome(arguments)
    // Who asked for a result and did not get it must not take it for a success; other failures were told already.
    guard code == .ok || code == .workLeft, let reason = StandardStreams.lostOutput else { return code }
    StandardStreams.printError(
      "\(name): standard output could not be written: \(String(cString: strerror(reason))); the result is lost")
    return .failure
  }

  private func outcome(_ arguments: [String]) async -> ExitCode {
    do {
      let (command, rest) = try choose(arguments)
      guard let command else {
        StandardStreams.print(help)
        return .ok
      }
      let parsed = try Arguments(parsing: rest, for: command.specification)
      if parsed.wantsHelp {
        StandardStreams.print(command.specification.help)
        return .ok
      }
      return try await command.run(parsed)
    } catch {
      let failure = Self.failure(error, explain)
      StandardStreams.printError(
        failure.message.split(separator: "\n").map { "\(name): \($0)" }.joined(separator: "\n"))
      return failure.exitCode
    }
  }

  /// The command meant, nil when the help of the program is asked for.
  private func choose(_ arguments: [String]) throws(UsageError) -> (Command?, [String]) {
    if let only { return (only, arguments) }
    guard let first = arguments.first else {
      throw UsageError("a command is missing; \(name) --help lists them")
    }
    if ["--help", "-h", "help"].contains(first) { return (nil, []) }
    // Two words first: `bench` has a meaning of its own beside `bench ingest`.
    let two = arguments.prefix(2).joined(separator: " ")
    if arguments.count > 1, let verb = verbs.first(where: { $0.name == two }) {
      return (verb.command, Array(arguments.dropFirst(2)))
    }
    if let verb = verbs.first(where: { $0.name == first }) { return (verb.command, Array(arguments.dropFirst())) }
    let group = verbs.filter { $0.name.hasPrefix(first + " ") }
    let words = group.isEmpty ? first : two
    if !group.isEmpty {
      guard let second = arguments.dropFirst().first, !second.hasPrefix("--") else {
        if arguments.contains("--help") { return (nil, []) }
        throw UsageError("\(name) \(first) is one of \(group.map(\.name).joined(separator: ", "))")
      }
    }
    let near = NearestName.hint(verbs.map(\.name), for: words)
    throw UsageError("unknown command \"\(words)\"\(near.isEmpty ? "; \(name) --help lists them" : near)")
  }

  private static func failure(_ error: any Error, _ explain: (any Error) -> CommandFailure?) -> CommandFailure {
    switch error {
    case let failure as CommandFailure: failure
    case let usage as UsageError: CommandFailure(.usage, usage.message)
    case let configuration as ConfigurationError: CommandFailure(.configuration, configuration.description)
    case is CancellationError: CommandFailure(.interrupted, "interrupted")
    default: explain(error) ?? CommandFailure(.failure, "\(error)")
    }
  }
}
