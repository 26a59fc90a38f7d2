/// The command line did not fit the declared options.
public struct UsageError: Error, Sendable, Hashable, CustomStringConvertible {
  /// One sentence, with the remedy.
  public let message: String

  public init(_ message: String) {
    self.message = message
  }

  public var description: String { message }
}

/// What a command was given, checked against its declaration.
public struct Arguments: Sendable, Hashable {
  public let command: CommandSpecification
  /// `--help` or `-h` was among the arguments; nothing else was checked.
  public let wantsHelp: Bool
  private let values: [String: [String]]

  /// Checks the arguments that follow the command's name.
  ///
  /// - Throws: `UsageError` for an unknown option (with the nearest name), a missing or unexpected value, a repeated
  ///   option or value that may not be, a value outside its choices, an empty one or one with a line break, and anything
  ///   that is not an option.
  public init(parsing arguments: [String], for command: CommandSpecification) throws(UsageError) {
    self.command = command
    wantsHelp = Self.asksForHelp(arguments, command)
    var values: [String: [String]] = [:]
    var rest = wantsHelp ? [] : arguments[...]
    while let argument = rest.popFirst() {
      guard argument.hasPrefix("--"), argument.count > 2 else {
        throw UsageError("unexpected argument \"\(argument)\"; \(Self.advice(argument, command))")
      }
      let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = String(parts[0])
      let known = command.options.map(\.name) + ["help"]
      guard let option = command.options.first(where: { $0.name == name }) else {
        let near = NearestName.among(known, to: name).map { "; did you mean --\($0)?" } ?? "; --help lists the options"
        throw UsageError("unknown option --\(name)\(near)")
      }
      if values[name] != nil, !option.isRepeatable {
        throw UsageError("--\(name) is given twice; keep one")
      }
      let value = try Self.value(of: option, attached: parts.dropFirst().first, rest: &rest)
      // Not quoted: it may be a password.
      if values[name]?.contains(value) == true { throw UsageError("--\(name) is given twice with the same value") }
      values[name, default: []].append(value)
    }
    self.values = values
  }

  /// Whether `--help` or `-h` stands where an option may stand, and not as the value of one.
  private static func asksForHelp(_ arguments: [String], _ command: CommandSpecification) -> Bool {
    var isValue = false
    for argument in arguments {
      if argument == "--help" || argument == "-h" && !isValue { return true }
      isValue =
        !isValue && command.options.contains { $0.valueName != nil && argument == "--\($0.name)" }
    }
    return false
  }

  /// What was probably meant by something that is no option.
  private static func advice(_ argument: String, _ command: CommandSpecification) -> String {
    if argument == "--" { return "nothing but options is taken here" }
    let isFile = argument.contains(".") || argument.contains("/")
    if isFile, let option = command.options.first(where: { $0.name == "config" }) {
      return "did you mean --\(option.name) \(argument)?"
    }
    return "options start with --"
  }

  private static func value(
    of option: OptionSpecification, attached: Substring?, rest: inout ArraySlice<String>
  ) throws(UsageError) -> String {
    guard let valueName = option.valueName else {
      if attached != nil { throw UsageError("--\(option.name) takes no value") }
      return ""
    }
    let value: String
    if let attached {
      value = String(attached)
    } else if let next = rest.first, !next.hasPrefix("--") {
      value = next
      rest.removeFirst()
    } else {
      throw UsageError("--\(option.name) needs a value: --\(option.name) \(valueName)")
    }
    if !option.choices.isEmpty, !option.choices.contains(value) {
      throw UsageError("--\(option.name) must be one of \(option.choices.joined(separator: ", "))")
    }
    if value.isEmpty {
      throw UsageError("--\(option.name) must not be empty: --\(option.name) \(valueName)")
    }
    if let wrong = SecretText.controlProblem(value) { throw UsageError("--\(option.name) \(wrong)") }
    return value
  }

  // MARK: Reading

  public func flag(_ name: String) -> Bool { values[name] != nil }

  public func value(_ name: String) -> String? { values[name]?.last }

  /// All values of a repeatable option, in order.
  public func values(_ name: String) -> [String] { values[name] ?? [] }

  /// - Throws: `UsageError` when the option is missing.
  public func required(_ name: String) throws(UsageError) -> String {
    guard let value = value(name) else {
      let option = command.options.first { $0.name == name }
      throw UsageError("--\(name) is missing: --\(name) \(option?.valueName ?? "VALUE")")
    }
    return value
  }

  /// - Throws: `UsageError` when the value is not a whole number in `range`.
  public func integer(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
    guard let text = value(name) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw UsageError("--\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }
}
