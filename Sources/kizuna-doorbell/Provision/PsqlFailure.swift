import HostKit
import ServerPack

/// Turns what `psql` writes to standard error into an exit code and a sentence. It is never given the database's
/// address, so nothing of it but the host and the user can be in there.
enum PsqlFailure {
  static func failure(code: Int32, lines: [String]) -> CommandFailure {
    guard let error = ServerError(lines) else {
      let text = connectionProblem(lines)
      // Exit code 2 of psql: the connection was refused or lost.
      if code != 2 {
        return CommandFailure(.failure, text.isEmpty ? "psql ended with code \(code) and gave no reason" : text)
      }
      let isRefusal = ["authentication failed", "no password supplied", "no pg_hba.conf entry"].contains {
        text.contains($0)
      }
      return CommandFailure(isRefusal ? .authentication : .unreachable, "the database cannot be used: \(text)")
    }
    switch error.state {
    case ProvisionPlan.refusal: return CommandFailure(.configuration, error.message)
    case "42501":
      return CommandFailure(
        .authentication, "\(error.message); provision as the role that owns the tables, on Supabase as postgres")
    default:
      return CommandFailure(
        .failure, "the database refused, and nothing was changed: \(error.message) (SQLSTATE \(error.state))")
    }
  }

  private static func connectionProblem(_ lines: [String]) -> String {
    lines.map { $0.hasPrefix("psql: ") ? String($0.dropFirst(6)) : $0 }
      .map { $0.hasPrefix("error: ") ? String($0.dropFirst(7)) : $0 }
      .map { String($0.drop { $0 == "\t" || $0 == " " }) }.filter { !$0.isEmpty }.joined(separator: "; ")
  }

  /// The first error of a script, in psql's verbose form: `psql:FILE:LINE: ERROR:  STATE: text`, then its details.
  struct ServerError: Equatable {
    let state: String
    /// The text and the hint.
    let message: String

    init?(_ lines: [String]) {
      let marker = "ERROR:  "
      var text: [String] = []
      var hint: [String] = []
      var state: String?
      var isHint = false
      for line in lines {
        if state == nil {
          guard let start = line.indices.first(where: { line[$0...].hasPrefix(marker) }) else { continue }
          let rest = line[start...].dropFirst(marker.count)
          guard rest.count > 7, rest.dropFirst(5).hasPrefix(": ") else { continue }
          state = String(rest.prefix(5))
          text = [String(rest.dropFirst(7))]
        } else if line.hasPrefix("HINT:  ") {
          isHint = true
          hint = [String(line.dropFirst(7))]
        } else if Self.ends.contains(where: line.hasPrefix) {
          if !isHint, hint.isEmpty, line.hasPrefix("DETAIL:  ") { isHint = true; continue }
          break
        } else if isHint {
          if !hint.isEmpty { hint.append(line) }
        } else {
          text.append(line)
        }
      }
      guard let state else { return nil }
      self.state = state
      message = (text + hint).joined(separator: "\n")
    }

    private static let ends = ["DETAIL:  ", "CONTEXT:  ", "LOCATION:  ", "QUERY:  ", "STATEMENT:  ", "LINE "]
  }
}
