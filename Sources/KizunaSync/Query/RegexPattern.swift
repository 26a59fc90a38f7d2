import HostKit

/// A regular expression that was checked when it was written, compiled again wherever it runs.
struct RegexPattern: Equatable, Sendable {
  let source: String
  let ignoringCase: Bool

  /// - Throws: `LOCAL_UNSUPPORTED` for a pattern that does not compile.
  init(_ source: String, ignoringCase: Bool) throws {
    self.source = source
    self.ignoringCase = ignoringCase
    guard compiled() != nil else {
      throw KizunaSyncError(.localUnsupported, "the pattern is not a regular expression")
    }
  }

  /// The compiled form is not `Sendable`, so each evaluation makes its own.
  func compiled() -> Regex<AnyRegexOutput>? {
    let regex = try? Regex(source).matchingSemantics(.unicodeScalar)
    return ignoringCase ? regex?.ignoresCase() : regex
  }
}
