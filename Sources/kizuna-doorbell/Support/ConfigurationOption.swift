import HostKit
import KizunaDoorbell

/// `--config F`, for the verbs that have it.
enum ConfigurationOption {
  static let option = OptionSpecification.value("config", "FILE", "the configuration, JSON with comments")

  /// Reads the file and logs its warnings.
  /// - Parameter signsIn: false for verbs that need no server: they work for users who may not read the secrets.
  static func load(_ arguments: Arguments, log: HostLog, signsIn: Bool = true) throws -> GatewayConfiguration {
    let file = try arguments.required("config")
    let (configuration, warnings) = try GatewayConfiguration.load(file: file, secrets: signsIn ? .now : .ifReadable)
    for warning in warnings {
      log.warning("configuration.warning", ["file": .string(file), "text": .string(warning.description)])
    }
    return configuration
  }
}
