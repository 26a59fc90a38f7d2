import HTTPClient
import HostKit
import Testing

@testable import KizunaDoorbell

@Suite struct FunctionVerdictTests {
  private func finding(
    _ check: Finding.Check, _ status: Int, _ code: String? = nil, refusal: ObservedHTTP.Refusal? = nil,
    body: JSONValue? = nil
  ) -> Finding {
    let exchange = ObservedHTTP.Exchange(
      function: check.rawValue, sentAt: 0, receivedAt: 0, outcome: .answered(status: status, code: code),
      refusal: refusal)
    return FunctionVerdict.finding(check, table: check == .pull ? "todos" : nil, exchange, body: body)
  }

  private static let refusals: [(Int, String?, ObservedHTTP.Refusal?, ExitCode, String)] = [
    (406, "PGRST106", nil, .configuration, "exposed schemas"), (404, "PGRST202", nil, .configuration, "install"),
    (404, "42883", nil, .configuration, "install"), (403, "42501", nil, .configuration, "grants"),
    (401, "42501", .token, .authentication, "project"), (401, nil, .key, .authentication, "publishableKey"),
    (401, "PGRST303", .expired, .authentication, "clock"), (400, "KZL01", nil, .configuration, "buckets"),
    (503, nil, nil, .unreachable, "tried again"), (429, nil, nil, .unreachable, "tried again"),
    (404, nil, nil, .configuration, "url"), (302, nil, nil, .configuration, "redirects"),
    (400, "22P02", nil, .failure, "buckets"),
    (400, "0A000", nil, .configuration, "tables"), (400, "P0001", nil, .failure, "log"),
    (418, nil, nil, .failure, "log"),
  ]

  @Test(arguments: refusals)
  func aRefusalNamesTheRemedy(
    status: Int, code: String?, refusal: ObservedHTTP.Refusal?, exit: ExitCode, words: String
  ) {
    for check in [Finding.Check.pull, .push] {
      let finding = finding(check, status, code, refusal: refusal)
      #expect(finding.status == .failed && finding.exitCode == exit, "\(finding)")
      #expect(finding.text.hasPrefix("kizunasync.\(check.rawValue) answered HTTP \(status)"))
      #expect("\(finding.text) \(finding.remedy ?? "")".contains(words), "\(finding)")
      #expect(finding.subject == (check == .pull ? "todos" : nil))
    }
  }

  private static let page: JSONValue = [
    "rows": [], "tombstones": [], "cursor": "7", "has_more": false, "signal": nil,
  ]

  private static let answers: [(Finding.Check, JSONValue?, Finding.Status, ExitCode, String)] = [
    (.pull, page, .ok, .ok, "answers"),
    (
      .pull, ["cursor": "7", "has_more": false, "signal": ["type": "CHECKPOINT_EXPIRED"]], .warning, .ok, "away"
    ),
    (
      .pull, ["cursor": "7", "has_more": false, "signal": ["type": "RESET_REQUIRED"]], .failed, .configuration,
      "too old"
    ),
    (.pull, ["hello": "world"], .failed, .configuration, "not kizunasync.pull"),
    (.pull, nil, .failed, .configuration, "not kizunasync.pull"),
    (.push, ["verdicts": []], .ok, .ok, "nothing was sent"),
    (.push, ["signal": ["type": "RESET_REQUIRED"]], .failed, .configuration, "too old"),
    (.push, [:], .failed, .configuration, "not kizunasync.push"), (.push, nil, .failed, .configuration, "not"),
  ]

  @Test(arguments: answers)
  func anAnswerIsLookedAt(
    check: Finding.Check, body: JSONValue?, status: Finding.Status, exit: ExitCode, words: String
  ) {
    let finding = finding(check, 200, body: body)
    #expect(finding.status == status && finding.exitCode == exit, "\(finding)")
    #expect(finding.text.contains(words), "\(finding.text)")
  }

  @Test func aServerThatWantsMutationsHasTheFunction() {
    #expect(finding(.push, 400, "22023").status == .ok)
    #expect(finding(.pull, 400, "22023").status == .failed)
  }

  @Test func noAnswer() {
    let exchange = ObservedHTTP.Exchange(
      function: "pull", sentAt: 0, receivedAt: 0,
      outcome: .failed(HTTPError(.unreachable, "example.com:443 cannot be reached")))
    let finding = FunctionVerdict.finding(.pull, table: "todos", exchange, body: nil)
    #expect(finding.exitCode == .unreachable && finding.remedy?.isEmpty == false)
  }
}
