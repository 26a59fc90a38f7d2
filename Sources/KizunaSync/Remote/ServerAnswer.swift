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
  /// The tables it may be about: those that the request named, or the one of them that the answer speaks of.
  package let tables: [String]

  package init(status: Int, code: String?, refusal: Refusal? = nil, tables: [String] = []) {
    self.status = status
    self.code = code
    self.refusal = refusal
    self.tables = tables
  }

  /// - Parameter tables: those that the request named.
  package init(_ response: HTTPResponse, asking tables: [String] = []) {
    let body = (200..<300).contains(response.status) ? nil : try? JSONValue(parsing: response.body)
    let message = body?["message"]?.stringValue
    status = response.status
    code = Self.code(body?["code"])
    refusal = Self.refusal(response.status, code: code, message: message)
    self.tables = Self.narrowed(tables, by: message ?? "")
  }

  /// The one table of ours whose name is a word of the server's text; all of them when there is no such one.
  private static func narrowed(_ tables: [String], by message: String) -> [String] {
    guard tables.count > 1 else { return tables }
    let words = Set(
      message.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_")) }.map(String.init))
    let named = tables.filter(words.contains)
    return named.count == 1 ? named : tables
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
    head(of: function) + meaning(of: function)
  }

  /// How each sentence begins. What begins so was made here, and may be shown.
  package func head(of function: String) -> String {
    "kizunasync.\(function) failed: HTTP \(status)" + (code.map { ", \($0)" } ?? "") + ": "
  }

  /// Codes that say that tables, buckets or modes are declared otherwise on the server.
  package static let mistakes: Set<String> = ["0A000", "KZL01", "KZP01"]

  /// Whether a sentence made here is about such a code.
  package static func isMistake(_ sentence: String) -> Bool {
    let parts = sentence.split(separator: ":", maxSplits: 2)
    guard parts.count == 3, parts[0].hasPrefix("kizunasync."), let comma = parts[1].lastIndex(of: ",") else {
      return false
    }
    return mistakes.contains(String(parts[1][parts[1].index(after: comma)...].drop { $0 == " " }))
  }

  /// The table, those that come into question, or none.
  private func table(otherwise words: String) -> String {
    switch tables.count {
    case 1: "the table \(tables[0])"
    case 2...4: "one of the tables \(tables.joined(separator: ", "))"
    default: words
    }
  }

  /// What it means and what to do about it.
  /// - Parameter function: `pull` or `push`.
  package func meaning(of function: String) -> String {
    switch refusal {
    case .key: return "the server refused the publishable key; check publishableKey"
    case .expired: return "the access token has expired; get a new one, and check this machine's clock"
    case .token: return "the server refused the access token or the key; check that both belong to this project"
    case nil: break
    }
    switch code ?? "" {
    case "42501":
      return "the signed-in user may not use a table or function of it; check the grants and policies on the server"
    case "PGRST106":
      return
        "the server does not expose the schema kizunasync; add it to the exposed schemas, after kizuna-doorbell provision if the project was never prepared"
    case "PGRST202", "42883":
      return
        "the server lacks the function; install the Kizuna Sync functions there, as kizuna-doorbell provision does, or reload its schema cache"
    case "KZL01":
      return
        "\(table(otherwise: "a table")) is bucketed on the server by another column than in the configuration; compare the buckets"
    case "KZP01":
      return "\(table(otherwise: "a table")) is pull-only on the server; set its syncMode to pull-only"
    case "KZP02": return "the batch has more writes than the server takes at once"
    case "0A000":
      return
        "the server does not synchronise \(table(otherwise: "a table of the request")); compare `tables` in the configuration with the server, and provision it for what is new"
    case "P0001" where isAboutWrites(function):
      return
        "the server's own rules refuse the oldest write, of \(table(otherwise: "a table")); correct the row here or the rule there"
    case "P0001": return "the server's own rules refuse the call; see its log"
    case "57014": return "the server cancelled the statement because it took too long"
    case "53300", "53400": return "the server has no connection left; it is tried again"
    default: break
    }
    if let code, ["22", "23"].contains(code.prefix(2)) {
      return isAboutWrites(function)
        ? "a value of the oldest write, of \(table(otherwise: "a table")), does not fit that table on the server; correct the row here or the table there"
        : "the server does not take an argument of the call; compare the buckets and their values with its tables"
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

  private func isAboutWrites(_ function: String) -> Bool { function == "push" && !tables.isEmpty }
}
