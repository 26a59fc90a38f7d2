import HostKit

/// What reading the configuration came to.
package enum ConfigurationVerdict {
  private static let unusable = "the configuration cannot be used"

  package static func findings(file: String, warnings: [ConfigurationProblem]) -> [Finding] {
    guard !warnings.isEmpty else { return [.ok(.configuration, "\(file) can be used")] }
    return warnings.map { problem in
      let parts = Finding.split("\(file):\(problem)")
      return .warning(.configuration, parts.text, remedy: parts.remedy ?? "change it if it is not meant")
    }
  }

  /// One that cannot be used: each problem by itself, and everything else waits for them.
  package static func findings(_ error: ConfigurationError) -> [Finding] {
    let problems = error.problems.map { problem in
      Finding.failed(
        .configuration, .configuration, sentence: "\(error.file):\(problem)", otherwise: "correct it in the file")
    }
    let rest = Finding.Check.allCases.filter { $0 != .configuration }
    return problems + rest.map { .skipped($0, Self.unusable) }
  }
}
