import HTTPClient
import HostKit
import KizunaSync
import Testing

@testable import KizunaDoorbell

@Suite struct FailureSentenceTests {
  /// What a server says beside its code: it quotes a row.
  private static let said = "Key (email)=(ann@example.com) already exists"

  private func exchange(
    _ status: Int, _ code: String? = nil, refusal: ObservedHTTP.Refusal? = nil
  ) -> ObservedHTTP.Exchange {
    ObservedHTTP.Exchange(
      function: "push", sentAt: 1, receivedAt: 2, outcome: .answered(status: status, code: code), refusal: refusal)
  }

  private static let answers: [(Int, String?, ObservedHTTP.Refusal?, String)] = [
    (401, "PGRST303", .expired, "has expired"), (401, nil, .key, "publishableKey"), (401, "PGRST301", .token, "token"),
    (403, "42501", nil, "grants and policies"), (403, nil, nil, "forbids"), (404, "PGRST202", nil, "install"),
    (406, "PGRST106", nil, "exposed schemas"), (409, "23505", nil, "argument"), (400, "22P02", nil, "argument"),
    (400, "42703", nil, "compare its schema"), (413, nil, nil, "too large"), (429, nil, nil, "slow down"),
    (500, "XX000", nil, "the server failed"), (503, nil, nil, "the server failed"), (301, nil, nil, "redirects"),
    (418, nil, nil, "see its log"), (404, nil, nil, "url"), (400, "KZP01", nil, "syncMode"),
    (400, "0A000", nil, "compare `tables`"),
  ]

  @Test(arguments: answers)
  func anAnswerIsSpelledWithoutItsText(status: Int, code: String?, refusal: ObservedHTTP.Refusal?, word: String) {
    for catalogue in ["REMOTE", "PERMANENT_TRANSPORT"] {
      let error = KizunaSyncError.engine(code: catalogue, message: "kizunasync.push failed: \(Self.said) (23505)")
      let sentence = FailureSentence.of(error, last: exchange(status, code, refusal: refusal))
      #expect(sentence.hasPrefix("kizunasync.push failed: HTTP \(status)"))
      #expect(sentence.contains(word), "\(sentence)")
      if let code { #expect(sentence.contains(code)) }
      #expect(!sentence.contains("ann@example.com"))
    }
  }

  @Test func theNetworkAndOurOwnRefusalsSpeakForThemselves() {
    let network = KizunaSyncError.engine(code: "REMOTE", message: "kizunasync.pull failed: x")
    var exchange = exchange(0)
    exchange.outcome = .failed(HTTPError(.unreachable, "example.com:443 cannot be reached: connection refused"))
    #expect(
      FailureSentence.of(network, last: exchange) == "example.com:443 cannot be reached: connection refused")
    for code in ["STORE", "STORE_BUSY", "STORE_UNAVAILABLE", "BUCKET_UNSET", "JSON", "VERDICT_BIJECTION"] {
      let error = KizunaSyncError.engine(code: code, message: "the disk is full")
      #expect(FailureSentence.of(error, last: self.exchange(500)) == "the disk is full")
    }
    let nobody = KizunaSyncError.engine(code: "REMOTE", message: "AUTH_SESSION_MISSING: nobody is signed in")
    #expect(FailureSentence.of(nobody, last: nil) == nobody.message)
  }

  /// Nobody is told to raise a limit that is not the cause.
  @Test(arguments: [(257, "is not too large"), (70_000, "raise that limit")])
  func aRefusalForSizeIsBelievedOfWhatIsLarge(bytes: Int, words: String) {
    var exchange = exchange(413)
    exchange.requestBytes = bytes
    let sentence = FailureSentence.of(KizunaSyncError.engine(code: "REMOTE", message: Self.said), last: exchange)
    #expect(sentence.contains(words) && !sentence.contains(Self.said), "\(sentence)")
  }

  /// The client knows which tables a call was about, and its sentence is one of ours.
  @Test func theTableStays() {
    let sentence = ServerAnswer(status: 400, code: "0A000", tables: ["notes"]).sentence(of: "push")
    let error = KizunaSyncError.engine(code: "PERMANENT_TRANSPORT", message: sentence)
    #expect(FailureSentence.of(error, last: exchange(400, "0A000")) == sentence)
    #expect(sentence.contains("the table notes") && !sentence.contains("see the oldest write"))
  }

  @Test func kinds() {
    func kind(_ code: String, _ exchange: ObservedHTTP.Exchange?) -> GatewayError.Kind {
      GatewayError(KizunaSyncError.engine(code: code, message: "x"), last: exchange).kind
    }
    #expect(kind("REMOTE", exchange(401, refusal: .token)) == .authentication)
    #expect(kind("REMOTE", exchange(403, refusal: .key)) == .authentication)
    #expect(kind("REMOTE", exchange(403, "42501")) == .other)
    for status in [408, 429, 500, 503] { #expect(kind("REMOTE", exchange(status)) == .unreachable) }
    #expect(kind("STORE", exchange(500)) == .database)
    // Tables, buckets and modes that the server declares otherwise; the last call may be the pull after the push.
    for code in ["0A000", "KZL01", "KZP01", "22P02", "P0001"] {
      let sentence = ServerAnswer(status: 400, code: code, tables: ["notes"]).sentence(of: "push")
      let error = KizunaSyncError.engine(code: "PERMANENT_TRANSPORT", message: sentence)
      let isMistake = !["22P02", "P0001"].contains(code)
      #expect(GatewayError(error, last: exchange(200)).kind == (isMistake ? .configuration : .other), "\(sentence)")
    }
    // A server's own mistake, and another program in its place.
    #expect(kind("JSON", exchange(200)) == .other)
    var foreign = exchange(200)
    foreign.isForeign = true
    #expect(kind("JSON", foreign) == .unreachable)
    #expect(kind("CONFIG_INVALID", nil) == .configuration)
    #expect(GatewayError(run: HTTPError(.other, "a token"), last: nil).message.contains("HTTPError"))
    #expect(!GatewayError(run: HTTPError(.other, "a token"), last: nil).message.contains("a token"))
  }
}
