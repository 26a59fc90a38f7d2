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

    \(Self.table(verbs))

    \(name) COMMAND --help describes a command; \(name) --version tells the release.

    Exit codes:
    \(TextTable.columns(ExitCode.allCases.map { ("\($0.rawValue)", $0.meaning) }))
    """
  }

  private static func table(_ verbs: [(name: String, command: Command)]) -> String {
    TextTable.columns(verbs.map { ($0.name, $0.command.specification.summary) })
  }

  /// The help of a verb, of the members of a group, or of everything.
  private func help(on words: [String]) throws(UsageError) -> String {
    guard let first = words.first, only == nil else { return only?.specification.help ?? help }
    if let verb = verbs.first(where: { $0.name == words.joined(separator: " ") }) {
      return verb.command.specification.help
    }
    let group = group(first)
    guard words.count == 1, !group.isEmpty else { throw unknown(words.joined(separator: " ")) }
    return """
      usage: \(name) COMMAND [options]

      \(Self.table(group))

      \(name) COMMAND --help describes a command.
      """
  }

  private func group(_ word: String) -> [(name: String, command: Command)] {
    verbs.filter { $0.name.hasPrefix(word + " ") }
  }

  private func unknown(_ words: String) -> UsageError {
    // A member of a group by its own name alone, else whatever is spelled nearly so.
    let member = verbs.first { $0.name.hasSuffix(" " + words) }.map { "; did you mean \"\($0.name)\"?" }
    let near = member ?? NearestName.hint(verbs.map(\.name), for: words)
    return UsageError("unknown command \"\(words)\"\(near.isEmpty ? "; \(name) --help lists them" : near)")
  }

  /// Runs the program with the process's arguments and ends the process.
  public func main() async -> Never {
    StandardDescriptors.fill()
    ProcessEnd.exit(await run(Array(CommandLine.arguments.dropFirst())))
  }

  /// - Parameter arguments: without the program's name.
  public func run(_ arguments: [String]) async -> ExitCode {
    let parsed = Locked<Arguments?>(nil)
    let code = await outcome(arguments, parsed)
    let isComplete = await StandardStreams.finish()
    // Who asked for a result and did not get it must not take it for a success; other failures were told already.
    guard code == .ok || code == .workLeft else { return code }
    guard isComplete else { return .interrupted }
    guard let reason = StandardStreams.lostOutput else { return code }
    LogOutput.printFailure(
      "standard output could not be written: \(String(cString: strerror(reason))); the result is lost", .failure,
      program: name, arguments: parsed.withLock { $0 })
    _ = await StandardStreams.finish()
    return .failure
  }

  private func outcome(_ arguments: [String], _ known: Locked<Arguments?>) async -> ExitCode {
    do {
      if let text = try information(arguments) {
        StandardStreams.print(text)
        return .ok
      }
      let (command, rest) = try choose(arguments)
      let parsed = try Arguments(parsing: rest, for: command.specification)
      if parsed.wantsHelp {
        StandardStreams.print(command.specification.help)
        return .ok
      }
      known.withLock { $0 = parsed }
      return try await command.run(parsed)
    } catch {
      let failure = Self.failure(error, explain)
      LogOutput.printFailure(
        failure.message, failure.exitCode, program: name, arguments: known.withLock { $0 })
      return failure.exitCode
    }
  }

  /// What is printed without any command: a help or the release.
  private func information(_ arguments: [String]) throws(UsageError) -> String? {
    guard let first = arguments.first else { return nil }
    switch first {
    case "--version": return "\(name) \(Release.version)"
    case "--help", "-h": return try help(on: [])
    case "help" where only == nil: return try help(on: arguments.dropFirst().filter { !$0.hasPrefix("-") })
    default: break
    }
    // A group has no options of its own, so this is all that can be asked of one.
    let isGroup = only == nil && !verbs.contains { $0.name == first } && !group(first).isEmpty
    guard isGroup, let second = arguments.dropFirst().first, ["--help", "-h", "help"].contains(second) else {
      return nil
    }
    return try help(on: [first])
  }

  /// The command meant, and what follows its name.
  private func choose(_ arguments: [String]) throws(UsageError) -> (Command, [String]) {
    if let only { return (only, arguments) }
    guard let first = arguments.first else {
      throw UsageError("a command is missing; \(name) --help lists them")
    }
    // Two words first: `bench` has a meaning of its own beside `bench ingest`.
    let two = arguments.prefix(2).joined(separator: " ")
    if arguments.count > 1, let verb = verbs.first(where: { $0.name == two }) {
      return (verb.command, Array(arguments.dropFirst(2)))
    }
    let group = group(first)
    let second = arguments.dropFirst().first { _ in true }
    if let verb = verbs.first(where: { $0.name == first }) {
      // A misspelt member of its group; anything else is the verb's to refuse.
      if !group.isEmpty, let second, !second.hasPrefix("-"), NearestName.among(group.map(\.name), to: two) != nil {
        throw unknown(two)
      }
      return (verb.command, Array(arguments.dropFirst()))
    }
    guard !group.isEmpty else { throw unknown(first) }
    guard let second, !second.hasPrefix("--") else {
      throw UsageError("\(name) \(first) is one of \(group.map(\.name).joined(separator: ", "))")
    }
    throw unknown(two)
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
