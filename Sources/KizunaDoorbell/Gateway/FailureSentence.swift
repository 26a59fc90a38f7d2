import HostKit
import KizunaSync

/// The sentence for a failed sync that may be logged, kept and shown: what failed and what to do about it.
///
/// What a server writes beside a code may quote rows, so of an answer only status and code are spelled; the sentence is
/// ours. Everything else (the store's, the network's, our own refusals) is ours already.
enum FailureSentence {
  /// - Parameter exchange: the last call of the run that failed, nil when it made none.
  static func of(_ error: KizunaSyncError, last exchange: ObservedHTTP.Exchange?) -> String {
    guard let exchange, speaksOfServer(error) else { return error.message }
    switch exchange.outcome {
    // Whose answer is too large is not all there is to say of it.
    case .failed(let failure) where failure.kind == .tooLarge: return error.message
    case .failed(let failure): return failure.message
    case .answered(let status, _) where (200..<300).contains(status): return error.message
    case .answered(let status, let code):
      let said = "kizunasync.\(exchange.function) answered HTTP \(status)" + (code.map { ", \($0)" } ?? "")
      return "\(said): \(meaning(exchange, status: status, code: code ?? ""))"
    }
  }

  /// Whether the error's own text may be the server's.
  private static func speaksOfServer(_ error: KizunaSyncError) -> Bool {
    switch ErrorCode(rawValue: error.code) {
    case .remote, .permanentTransport: true
    default: false
    }
  }

  /// What an answer means and what to do about it, without what was said with it.
  static func meaning(_ exchange: ObservedHTTP.Exchange, status: Int, code: String) -> String {
    switch exchange.refusal {
    case .key: return "the server refused the publishable key; check publishableKey"
    case .expired: return "the access token has expired; get a new one, and check this machine's clock"
    case .token: return "the server refused the access token or the key; check that both belong to this project"
    case nil: break
    }
    switch code {
    case "42501":
      return "the signed-in user may not use a table or function of it; check the grants and policies on the server"
    case "PGRST106": return "the server does not expose the schema kizunasync; add it to the exposed schemas"
    case "PGRST202", "42883":
      return "the server lacks the function; install the Kizuna Sync functions there, or reload its schema cache"
    case "KZL01":
      return "a table is bucketed on the server by another column than in the configuration; compare the buckets"
    case "KZP01": return "a table is pull-only on the server; set its syncMode to pull-only"
    case "KZP02": return "the batch has more writes than the server takes at once"
    case "P0001", "0A000": return "the server's own rules refuse the oldest write; see the oldest write in status"
    case "57014": return "the server cancelled the statement because it took too long"
    case "53300", "53400": return "the server has no connection left; it is tried again"
    default: break
    }
    if ["22", "23"].contains(code.prefix(2)) {
      return "a value of the oldest write does not fit the server's table; see the oldest write in status"
    }
    if code.hasPrefix("42") {
      return
        "the server lacks a table, a column or a function that is asked for; compare its schema with the configuration"
    }
    return switch status {
    case 300..<400: "the server redirects elsewhere; give the address it redirects to as url"
    case 403: "the server forbids the call; check the publishable key and the server's access rules"
    case 404: "there is no sync service at this address; check url and that the Kizuna Sync functions are installed"
    case 408, 504: "the server or what stands before it took too long; it is tried again"
    case 413: "the request is too large for the server"
    case 429: "the server asks to slow down; it is tried again"
    case 500...: "the server failed; it is tried again"
    default: "the server refused the request; see its log"
    }
  }
}
