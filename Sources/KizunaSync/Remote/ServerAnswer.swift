import HTTPClient
import HostKit

/// What an answer that is an error tells people: the function, status and code, and a sentence of ours with the remedy.
///
/// What a server writes beside a code may quote rows, and a stranger in the server's place may quote what it was sent. So
/// its text is looked at only to classify, and never kept, logged or shown. Pure.
package struct ServerAnswer: Sendable, Hashable {
  /// Why a server refused the credentials of a call.
  package enum Refusal: Sendable, Hashable {
    case key, expired
    /// The access token for another reason, or no reason was given.
    case token
  }

  package let status: Int
  /// The SQLSTATE or PostgREST code, nil for anything that does not look like one.
  package let code: String?
  /// Set when the answer is about the credentials and not about what was asked.
  package let refusal: Refusal?

  package init(status: Int, code: String?, refusal: Refusal? = nil) {
    self.status = status
    self.code = code
    self.refusal = refusal
  }

  package init(_ response: HTTPResponse) {
    let body = (200..<300).contains(response.status) ? nil : try? JSONValue(parsing: response.body)
    status = response.status
    code = Self.code(body?["code"])
    refusal = Self.refusal(response.status, code: code, message: body?["message"]?.stringValue)
  }

  /// PostgREST checks the token before anything else (codes PGRST30x, 303 for one that has expired) and answers 401; what
  /// stands before it checks the key and answers 401 or 403 without a code. A 403 with an SQLSTATE is about rights.
  private static func refusal(_ status: Int, code: String?, message: String?) -> Refusal? {
    guard status == 401 || status == 403 && (code == nil || code?.hasPrefix("PGRST30") == true) else { return nil }
    let message = message?.lowercased() ?? ""
    if code == nil, message.contains("api key") || message.contains("apikey") { return .key }
    return code == "PGRST303" || message.contains("expired") ? .expired : .token
  }

  /// Codes of PostgreSQL and PostgREST are short and of capital letters and digits; keys, tokens and most values are not.
  private static func code(_ value: JSONValue?) -> String? {
    guard let code = value?.stringValue, !code.isEmpty, code.utf8.count <= 16 else { return nil }
    return code.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) } ? code : nil
  }

  /// - Parameter function: `pull` or `push`.
  package func sentence(of function: String) -> String {
    "kizunasync.\(function) failed: HTTP \(status)" + (code.map { ", \($0)" } ?? "") + ": " + meaning
  }

  /// What it means and what to do about it.
  package var meaning: String {
    switch refusal {
    case .key: return "the server refused the publishable key; check publishableKey"
    case .expired: return "the access token has expired; get a new one, and check this machine's clock"
    case .token: return "the server refused the access token or the key; check that both belong to this project"
    case nil: break
    }
    switch code ?? "" {
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
    if let code, ["22", "23"].contains(code.prefix(2)) {
      return "a value of the oldest write does not fit the server's table; see the oldest write in status"
    }
    if let code, code.hasPrefix("42") {
      return
        "the server lacks a table, a column or a function that is asked for; compare its schema with the configuration"
    }
    return switch status {
    case 300..<400:
      "the server redirects elsewhere; give the address it redirects to as url, or sign in to this network if it asks for that"
    case 403: "the server forbids the call; check the publishable key and the server's access rules"
    case 404: "there is no sync service at this address; check url and that the Kizuna Sync functions are installed"
    case 408, 504: "the server or what stands before it took too long; it is tried again"
    case 413: "the request is too large for the server or what stands before it; raise that limit"
    case 429: "the server asks to slow down; it is tried again"
    case 511: "this network wants a sign-in first; sign in to it with a browser"
    case 500...: "the server failed; it is tried again"
    default: "the server refused the request; see its log"
    }
  }
}
