/// One option of a command, as declared.
public struct OptionSpecification: Sendable, Hashable {
  /// Without the dashes.
  public let name: String
  /// What the value stands for in the help, for example `FILE`; nil for a switch, which takes none.
  public let valueName: String?
  public let help: String
  /// May be given several times.
  public let isRepeatable: Bool
  /// The only values accepted, when not empty.
  public let choices: [String]
  /// The command does nothing without it. For the help; who needs the value asks for it with `Arguments.required`.
  public private(set) var isRequired = false

  /// The same, needed.
  public var required: OptionSpecification {
    var option = self
    option.isRequired = true
    return option
  }

  private init(name: String, valueName: String?, help: String, isRepeatable: Bool, choices: [String]) {
    self.name = name
    self.valueName = valueName
    self.help = help
    self.isRepeatable = isRepeatable
    self.choices = choices
  }

  /// `--name`
  public static func flag(_ name: String, _ help: String) -> OptionSpecification {
    OptionSpecification(name: name, valueName: nil, help: help, isRepeatable: false, choices: [])
  }

  /// `--name VALUE` or `--name=VALUE`
  public static func value(
    _ name: String, _ valueName: String, _ help: String, repeatable: Bool = false
  ) -> OptionSpecification {
    OptionSpecification(name: name, valueName: valueName, help: help, isRepeatable: repeatable, choices: [])
  }

  /// `--name a|b|c`
  public static func choice(_ name: String, _ choices: [String], _ help: String) -> OptionSpecification {
    OptionSpecification(
      name: name, valueName: choices.joined(separator: "|"), help: help, isRepeatable: false, choices: choices)
  }
}

/// A command and its options, as declared. Every command also knows `--help`.
public struct CommandSpecification: Sendable, Hashable {
  /// What is typed, for example `kizuna-doorbell run`.
  public let invocation: String
  /// One sentence.
  public let summary: String
  public let options: [OptionSpecification]

  public init(invocation: String, summary: String, options: [OptionSpecification]) {
    self.invocation = invocation
    self.summary = summary
    self.options = options
  }

  /// What `--help` prints.
  public var help: String {
    let rows = (options + [.flag("help", "print this")]).map { option in
      (
        left: "--\(option.name)\(option.valueName.map { " " + $0 } ?? "")",
        right: option.help + (option.isRepeatable ? " (may be repeated)" : "")
          + (option.isRequired ? " (required)" : "")
      )
    }
    let required = options.filter(\.isRequired).map { "--\($0.name)\($0.valueName.map { " " + $0 } ?? "") " }
    return """
      \(summary)

      usage: \(invocation) \(required.joined())[options]

      \(TextTable.columns(rows))
      """
  }
}
