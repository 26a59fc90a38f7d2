import HostKit
import ServerPack

/// Turns what `psql` writes to standard error into an exit code and a sentence. It is never given the database's
/// address, so nothing of it but the host and the user can be in there.
enum PsqlFailure {
  static func failure(code: Int32, lines: [String]) -> CommandFailure {
    guard let error = ServerMessage.all(in: lines).first(where: \.isError) else {
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
    case ProvisionPlan.refusal: return CommandFailure(.configuration, error.text)
    case "42501":
      return CommandFailure(
        .authentication, "\(error.text); provision as the role that owns the tables, on Supabase as postgres")
    default:
      return CommandFailure(
        .failure, "the database refused, and nothing was changed: \(error.text) (SQLSTATE \(error.state))")
    }
  }

  private static func connectionProblem(_ lines: [String]) -> String {
    lines.map { $0.hasPrefix("psql: ") ? String($0.dropFirst(6)) : $0 }
      .map { $0.hasPrefix("error: ") ? String($0.dropFirst(7)) : $0 }
      .map { String($0.drop { $0 == "\t" || $0 == " " }) }.filter { !$0.isEmpty }.joined(separator: "; ")
  }
}
