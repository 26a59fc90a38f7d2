import HTTPClient
import HostKit

/// Why a call of one of the two server functions brought no usable answer.
package struct RemoteFailure: Error, Sendable, Equatable {
  package enum Kind: Sendable, Equatable {
    /// No answer: network, name resolution, TLS, timeout.
    case unreachable
    /// There is no access token to send.
    case noSession
    /// The server refused the access token or the key.
    case unauthorized
    /// The request was too large for the server (413), or the answer for this client.
    case tooLarge
    /// The server answered with an error that the same request may not meet again.
    case answered
    /// The server will answer this request the same way every time.
    case permanent
    /// The answer was not what the contract says.
    case malformed
  }

  package let kind: Kind
  /// What the client throws.
  package let error: KizunaSyncError
  /// The SQLSTATE or PostgREST code of the answer.
  package let serverCode: String?
  package let status: Int?
  /// The row that a page which is too large begins with, if the answer tells.
  let oversizedRow: OversizedRow?
  /// No complete answer came in the time a request has, though the connection stood: a smaller request may get through.
  private(set) var isTooSlow = false

  package init(_ kind: Kind, _ error: KizunaSyncError, serverCode: String? = nil, status: Int? = nil) {
    self.init(kind, error, serverCode: serverCode, status: status, oversizedRow: nil)
  }

  init(
    _ kind: Kind, _ error: KizunaSyncError, serverCode: String? = nil, status: Int? = nil, oversizedRow: OversizedRow?
  ) {
    self.kind = kind
    self.error = error
    self.serverCode = serverCode
    self.status = status
    self.oversizedRow = oversizedRow
  }

  /// An answer came, so the network is not to blame.
  var isAnswer: Bool {
    switch kind {
    case .unauthorized, .tooLarge, .answered, .permanent, .malformed: true
    case .unreachable, .noSession: false
    }
  }

  /// The server refused the request for its size. (Else it was the answer that was too large for this client, and the
  /// server has decided what it was sent.)
  var isRequestTooLarge: Bool { kind == .tooLarge && status != nil }

  /// Kizuna wire contract §10: permanent iff class 22, 23 or 42 (but not 42501), or one of five codes.
  static func isPermanent(_ code: String) -> Bool {
    if code == "42501" { return false }
    if ["22", "23", "42"].contains(code.prefix(2)), code.utf8.count == 5 { return true }
    return ["P0001", "0A000", "KZP01", "KZP02", "KZL01"].contains(code)
  }

  /// Classifies an answer that is not 2xx. The error spells none of its text.
  /// - Parameter tables: those that the request named.
  static func answer(_ response: HTTPResponse, function: String, tables: [String] = []) -> RemoteFailure {
    let answer = ServerAnswer(response, asking: tables)
    let message = answer.sentence(of: function)
    if let code = answer.code, isPermanent(code) {
      return RemoteFailure(
        .permanent, KizunaSyncError(.permanentTransport, message), serverCode: code, status: response.status)
    }
    let kind: Kind =
      switch response.status {
      case 413: .tooLarge
      case 401: .unauthorized
      default: .answered
      }
    return RemoteFailure(kind, KizunaSyncError(.remote, message), serverCode: answer.code, status: response.status)
  }

  static func transport(_ error: HTTPError, function: String) -> RemoteFailure {
    let kind: Kind = error.kind == .tooLarge ? .tooLarge : .unreachable
    if error.kind == .invalidURL {
      return RemoteFailure(.malformed, KizunaSyncError(.configInvalid, error.message))
    }
    var failure = RemoteFailure(
      kind, KizunaSyncError(.remote, "kizunasync.\(function) failed: \(error.message)"),
      oversizedRow: OversizedRow(head: error.head))
    failure.isTooSlow = error.isTooSlow
    return failure
  }

  /// A page of one row was too large: nothing smaller can be asked for.
  /// - Parameter tables: those that were asked for.
  static func oneRowTooLarge(_ failure: RemoteFailure, tables: [String]) -> RemoteFailure {
    let row = failure.oversizedRow
    let place = row?.table ?? tables.joined(separator: " or ")
    let sentence =
      row.map { "the row \($0.pk) of \(place) is too large by itself to be read" }
      ?? "a row of \(place) is too large by itself to be read, and the server does not tell which"
    return RemoteFailure(
      failure.kind,
      KizunaSyncError(
        .remote,
        "\(sentence), and nothing after it is; make it smaller on the server, or hide its large column from users"),
      serverCode: failure.serverCode, status: failure.status, oversizedRow: row)
  }

  /// What is smaller than this no server or proxy refuses for its size.
  package static let surelySmall = 64 * 1024

  /// Refused as too large (413), and cannot be: something else is wrong there.
  /// - Parameter bytes: of the request; nil for one that asks for a single row, which is always small.
  static func refusedForNoSize(_ failure: RemoteFailure, function: String, bytes: Int?) -> RemoteFailure {
    let what = bytes.map { "a request of \($0) bytes" } ?? "a request for a single row"
    return RemoteFailure(
      .answered, KizunaSyncError(.remote, sentence(refusedForNoSize: function, what)), serverCode: failure.serverCode,
      status: failure.status)
  }

  /// - Parameter what: was sent.
  package static func sentence(refusedForNoSize function: String, _ what: String) -> String {
    "kizunasync.\(function) failed: HTTP 413, though \(what) is not too large: the server, or a proxy before it, refuses it "
      + "for another reason; see the limits and the log there. It is tried again"
  }

  /// A 2xx answer that is no JSON object at all: whoever answers there is not the server.
  static func notJSON(function: String) -> RemoteFailure {
    malformed(
      .json,
      "kizunasync.\(function) was answered with something that is not a JSON object, so another program answers at this "
        + "address; check url, or sign in to this network if it asks for that")
  }

  static func malformed(_ code: ErrorCode, _ message: String) -> RemoteFailure {
    RemoteFailure(.malformed, KizunaSyncError(code, message))
  }
}
