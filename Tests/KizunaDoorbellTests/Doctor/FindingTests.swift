import HostKit
import Testing

@testable import KizunaDoorbell

@Suite struct FindingTests {
  private static let endings: [([ExitCode], ExitCode)] = [
    ([], .ok), ([.unreachable], .unreachable), ([.unreachable, .authentication], .authentication),
    ([.authentication, .configuration, .unreachable], .configuration), ([.workLeft, .failure], .failure),
    ([.workLeft], .workLeft), ([.configuration, .database], .database),
  ]

  @Test(arguments: endings)
  func theGravestFailureDecidesTheExitCode(failures: [ExitCode], expected: ExitCode) {
    let others: [Finding] = [.ok(.proxy, "x"), .warning(.clock, "x", remedy: "y"), .skipped(.ring, "x")]
    let failed = failures.map { Finding.failed(.server, $0, "x", remedy: "y") }
    #expect((others + failed).exitCode == expected)
    #expect((failed.reversed() + others).exitCode == expected)
  }

  @Test func aSentenceOfTheLibrariesIsPartedAtItsRemedy() {
    let finding = Finding.failed(.folder, .database, sentence: "it is full; free some; soon", otherwise: "wait")
    #expect(finding.text == "it is full" && finding.remedy == "free some; soon")
    let bare = Finding.failed(.folder, .database, sentence: "it is full", otherwise: "wait")
    #expect(bare.text == "it is full" && bare.remedy == "wait")
  }
}
