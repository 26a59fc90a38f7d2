import HostKit

/// What one check of `doctor` found out, for people: a sentence, and what to do where something is to be done.
package struct Finding: Sendable, Hashable {
  /// What is looked at, in the order in which it is reported.
  package enum Check: String, Sendable, CaseIterable {
    case configuration, folder, database, integrity, references, format
    case writeAheadLog = "write-ahead log"
    case disk, lock, replica, proxy
    case nameLookup = "name lookup"
    case server, clock, key
    case signIn = "sign-in"
    case token, pull, push, realtime, join, ring
  }

  package enum Status: String, Sendable, CaseIterable {
    case ok, warning, failed, skipped
  }

  package let check: Check
  /// Which table, where a check is made for each.
  package let subject: String?
  package let status: Status
  /// No token, key, full address or row value.
  package let text: String
  package let remedy: String?
  /// How a command that met it ends; `ok` unless it failed.
  package let exitCode: ExitCode

  private init(
    _ check: Check, _ subject: String?, _ status: Status, _ text: String, _ remedy: String?, _ exitCode: ExitCode
  ) {
    (self.check, self.subject, self.status, self.text, self.remedy) = (check, subject, status, text, remedy)
    self.exitCode = exitCode
  }

  package static func ok(_ check: Check, _ text: String, for subject: String? = nil) -> Finding {
    Finding(check, subject, .ok, text, nil, .ok)
  }

  package static func skipped(
    _ check: Check, _ reason: String, remedy: String? = nil, for subject: String? = nil
  ) -> Finding {
    Finding(check, subject, .skipped, reason, remedy, .ok)
  }

  package static func warning(_ check: Check, _ text: String, remedy: String, for subject: String? = nil) -> Finding {
    Finding(check, subject, .warning, text, remedy, .ok)
  }

  package static func failed(
    _ check: Check, _ exitCode: ExitCode, _ text: String, remedy: String, for subject: String? = nil
  ) -> Finding {
    Finding(check, subject, .failed, text, remedy, exitCode)
  }

  /// From a sentence as the libraries write them, `what is wrong; what to do`.
  static func failed(
    _ check: Check, _ exitCode: ExitCode, sentence: String, otherwise remedy: String, for subject: String? = nil
  ) -> Finding {
    let parts = split(sentence)
    return .failed(check, exitCode, parts.text, remedy: parts.remedy ?? remedy, for: subject)
  }

  /// What is wrong, and what to do where the sentence says so.
  static func split(_ sentence: String) -> (text: String, remedy: String?) {
    guard let semicolon = sentence.firstIndex(of: ";") else { return (sentence, nil) }
    let remedy = sentence[sentence.index(after: semicolon)...].drop { $0 == " " }
    return (String(sentence[..<semicolon]), remedy.isEmpty ? nil : String(remedy))
  }
}

extension [Finding] {
  /// The gravest failure first: what may lose data, then what only somebody's action mends, then what may pass.
  private static let gravity: [ExitCode] = [
    .database, .configuration, .authentication, .unreachable, .failure, .workLeft,
  ]

  /// How a command that found all this ends: as the gravest failure does, `ok` when nothing failed.
  package var exitCode: ExitCode {
    let codes = Set(filter { $0.status == .failed }.map(\.exitCode))
    if let worst = Self.gravity.first(where: codes.contains) { return worst }
    return codes.isEmpty ? .ok : .failure
  }
}
