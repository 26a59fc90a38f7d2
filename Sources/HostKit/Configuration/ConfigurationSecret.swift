import Glibc

/// A secret named by a configuration file. It never shows in descriptions, dumps or mirrors.
public struct ConfigurationSecret: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  public enum Source: Sendable, Hashable {
    /// Written in the configuration itself.
    case literal
    /// The whole file, without white space at its ends.
    case file(path: String)
    case environment(variable: String)
  }

  public let source: Source
  private let form: SecretText.Form
  private let text: String

  private init(source: Source, form: SecretText.Form, text: String) {
    self.source = source
    self.form = form
    self.text = text
  }

  public init(literal: String) {
    self.init(source: .literal, form: .text, text: literal)
  }

  /// One that could not be read, and is not needed: empty.
  init(unread source: Source, form: SecretText.Form) {
    self.init(source: source, form: form, text: "")
  }

  /// Reads the secret.
  ///
  /// - Throws: `ConfigurationSecretError` when the file or the variable is missing or empty, or holds what such a secret
  ///   cannot.
  public init(reading source: Source, form: SecretText.Form = .text) throws(ConfigurationSecretError) {
    switch source {
    case .literal: self.init(literal: "")
    case .file(let path):
      let text: String
      do { text = try HostFile.readText(path, maximumBytes: 1 << 16) } catch {
        throw ConfigurationSecretError(message: "the secret file \"\(path)\" cannot be read: \(error.reason)")
      }
      self.init(source: source, form: form, text: text.trimmed)
      if self.text.isEmpty { throw ConfigurationSecretError(message: "the secret file \"\(path)\" is empty") }
      try check("the secret in the file \"\(path)\"")
    case .environment(let variable):
      guard let value = getenv(variable), !String(cString: value).trimmed.isEmpty else {
        throw ConfigurationSecretError(message: "the environment variable \(variable) is not set")
      }
      self.init(source: source, form: form, text: String(cString: value).trimmed)
      try check("the secret in the environment variable \(variable)")
    }
  }

  private func check(_ name: String) throws(ConfigurationSecretError) {
    if let wrong = SecretText.problem(text, form) { throw ConfigurationSecretError(message: "\(name) \(wrong)") }
  }

  /// The secret as it was when the configuration was read.
  public var value: String { text }

  /// The secret as it is now: a file is read again, so that a token may be replaced while a process runs.
  public func current() throws(ConfigurationSecretError) -> String {
    if case .file = source { return try ConfigurationSecret(reading: source, form: form).text }
    return text
  }

  public var description: String { "<secret>" }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Why a secret could not be read. Names the file or the variable, never the secret.
public struct ConfigurationSecretError: Error, Sendable, Hashable, CustomStringConvertible {
  public let message: String
  public var description: String { message }
}

extension String {
  /// Without white space and line breaks at both ends.
  var trimmed: String {
    var rest = self[...]
    while rest.first?.isWhitespace == true { rest.removeFirst() }
    while rest.last?.isWhitespace == true { rest.removeLast() }
    return String(rest)
  }
}
