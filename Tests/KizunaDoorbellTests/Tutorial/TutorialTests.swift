import Foundation
import Testing

/// The tutorial shows the file that is compiled here, which is short.
@Suite struct TutorialTests {
  @Test func theTutorialShowsTheFileThatRuns() throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
    let compiled = folder.appending(path: "WakeupTests.swift").resolvingSymlinksInPath()
    let catalog = compiled.deletingLastPathComponent().deletingLastPathComponent()
    #expect(catalog.lastPathComponent == "KizunaSyncTestSupport.docc")
    let tutorial = try String(contentsOf: catalog.appending(path: "TestAReconnection.tutorial"), encoding: .utf8)
    let shown = tutorial.split(separator: "\n").filter { $0.contains("@Code(") }
    #expect(!shown.isEmpty)
    #expect(shown.allSatisfy { $0.contains(#"file: "WakeupTests.swift""#) })
    let lines = try String(contentsOf: compiled, encoding: .utf8).split(
      separator: "\n", omittingEmptySubsequences: false)
    // The last one is empty.
    #expect(lines.count - 1 < 40)
  }
}
