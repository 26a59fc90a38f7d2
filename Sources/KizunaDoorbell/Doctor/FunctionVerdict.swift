import HTTPClient
import HostKit
import KizunaSync

/// What the server's answer to a call of `pull` or `push` says about it.
enum FunctionVerdict {
  /// - Parameters:
  ///   - table: the one that was asked for; nil for `push`.
  ///   - exchange: how it went.
  ///   - body: of an answer that is no error.
  static func finding(
    _ check: Finding.Check, table: String?, _ exchange: ObservedHTTP.Exchange, body: JSONValue?
  ) -> Finding {
    switch exchange.outcome {
    case .failed(let error):
      return .failed(check, .unreachable, sentence: error.message, otherwise: "check the network", for: table)
    case .answered(let status, let code) where !(200..<300).contains(status):
      return refused(check, table, exchange, status: status, code: code)
    case .answered:
      return check == .pull ? pulled(table, body) : pushed(body)
    }
  }

  private static func refused(
    _ check: Finding.Check, _ table: String?, _ exchange: ObservedHTTP.Exchange, status: Int, code: String?
  ) -> Finding {
    // Whether a batch may be empty is not written anywhere; refused or not, the function is there and was called.
    if check == .push, code == "22023" { return .ok(.push, "kizunasync.push is there and may be called") }
    let said = "kizunasync.\(exchange.function) answered HTTP \(status)" + (code.map { ", \($0)" } ?? "")
    let parts = Finding.split(
      ServerAnswer(status: status, code: code, refusal: exchange.refusal, tables: table.map { [$0] } ?? [])
        .meaning(of: exchange.function))
    return .failed(
      check, exitCode(exchange, status: status, code: code), "\(said): \(parts.text)",
      remedy: parts.remedy ?? "see the server's log", for: table)
  }

  private static func exitCode(_ exchange: ObservedHTTP.Exchange, status: Int, code: String?) -> ExitCode {
    if exchange.refusal != nil { return .authentication }
    switch code {
    case "PGRST106"?, "PGRST202"?, "42883"?, "KZL01"?, "KZL02"?, "KZP01"?, "0A000"?: return .configuration
    // PostgREST runs a call without a user's token as `anon`.
    case "42501"?: return status == 401 ? .authentication : .configuration
    default: break
    }
    return switch status {
    case 300..<400, 403, 404: .configuration
    case 408, 429, 500...: .unreachable
    default: .failure
    }
  }

  private static func pulled(_ table: String?, _ body: JSONValue?) -> Finding {
    guard let body, body["has_more"]?.boolValue != nil, let cursor = body["cursor"]?.stringValue, !cursor.isEmpty else {
      return stranger(.pull, table)
    }
    switch body["signal"]?["type"]?.stringValue {
    case "RESET_REQUIRED": return tooOld(.pull, table)
    case "CHECKPOINT_EXPIRED":
      return .warning(
        .pull,
        "the replica was away for longer than the server remembers deletions, or the server was set up anew or put back since",
        remedy: "run or sync once, which reads everything again; writes that were not sent are kept", for: table)
    default: return .ok(.pull, "kizunasync.pull answers", for: table)
    }
  }

  private static func pushed(_ body: JSONValue?) -> Finding {
    if body?["verdicts"]?.arrayValue != nil { return .ok(.push, "kizunasync.push answers; nothing was sent") }
    return body?["signal"]?["type"]?.stringValue == "RESET_REQUIRED" ? tooOld(.push, nil) : stranger(.push, nil)
  }

  private static func tooOld(_ check: Finding.Check, _ table: String?) -> Finding {
    let parts = Finding.split(SoftBlock.sentence("reset_required"))
    return .failed(check, .configuration, parts.text, remedy: parts.remedy ?? "update the app", for: table)
  }

  private static func stranger(_ check: Finding.Check, _ table: String?) -> Finding {
    .failed(
      check, .configuration, "what answers at this address is not kizunasync.\(check.rawValue)",
      remedy: "check url, and that the Kizuna Sync functions are installed", for: table)
  }
}
