import Glibc

/// Decodes one configuration file and reports everything that is wrong with it at once.
///
/// ```swift
/// let (settings, warnings) = try ConfigurationDocument.decode(file: path) { root in
///   let url = root.string("url", required: "the address of the project")
///   let limit = root.integer("limit", in: 1...1000)
///   return url.map { Settings(url: $0, limit: limit ?? 100) }
/// }
/// ```
///
/// Inside the closure every getter answers nil for what is absent *or wrong*; what is wrong is on record already, so the
/// closure may return nil without a message of its own. Keys that no getter asked for are refused afterwards.
public enum ConfigurationDocument {
  /// When the secrets of a configuration are read.
  public enum SecretReading: Sendable, Hashable {
    /// With the rest: one that cannot be read is a problem.
    case now
    /// One that cannot be read is left empty. For who uses none, such as another user of the host who looks at a status.
    case ifReadable
  }

  /// - Returns: what the closure made, and what the owner of the file should know but need not fix.
  /// - Throws: `ConfigurationError` with every problem, in the order of the file.
  public static func decode<Result>(
    file: String, text: String, secrets: SecretReading = .now, _ body: (ConfigurationObject) -> Result?
  ) throws(ConfigurationError) -> (value: Result, warnings: [ConfigurationProblem]) {
    let parsed = ConfigurationParser.parse(text)
    let report = ConfigurationReport(directory: HostFile.directory(of: file), secrets: secrets)
    report.problems = parsed.problems
    report.fileIsWorldReadable = HostFile.isWorldReadable(file)
    var result: Result?
    if let node = parsed.node {
      if let root = ConfigurationObject(node, path: [], report: report) {
        result = body(root)
        root.refuseUnknownKeys()
      }
    }
    guard report.problems.isEmpty, let result else {
      if report.problems.isEmpty { preconditionFailure("a decoder returned nil without naming a problem") }
      throw ConfigurationError(file: file, problems: report.problems)
    }
    return (result, report.warnings)
  }

  /// Reads the file first.
  public static func decode<Result>(
    file: String, secrets: SecretReading = .now, _ body: (ConfigurationObject) -> Result?
  ) throws(ConfigurationError) -> (value: Result, warnings: [ConfigurationProblem]) {
    let text: String
    do { text = try HostFile.readText(file, maximumBytes: 1 << 20) } catch {
      let problem = ConfigurationProblem(
        position: nil, path: "",
        message: "the configuration cannot be read: \(error.reason); \(remedy(for: error))")
      throw ConfigurationError(file: file, problems: [problem])
    }
    return try decode(file: file, text: text, secrets: secrets, body)
  }

  private static func remedy(for error: HostFileError) -> String {
    switch error.code {
    case EACCES, EPERM: "let this user read it"
    case ENOENT, ENOTDIR: "give --config a file that is there, or write it"
    case 0: "give --config a file with the configuration"
    default: "see what is wrong with the file"
    }
  }
}

/// What the objects of one document share while it is decoded.
final class ConfigurationReport {
  let directory: String
  let secrets: ConfigurationDocument.SecretReading
  var fileIsWorldReadable = false
  var problems: [ConfigurationProblem] = []
  var warnings: [ConfigurationProblem] = []

  init(directory: String, secrets: ConfigurationDocument.SecretReading) {
    self.directory = directory
    self.secrets = secrets
  }
}
