import Foundation
import HostKit
import LocalStack
import SyncServer
import Testing

@Suite struct ReadmeExampleTests {
  /// Compiled is what is printed.
  @Test func isTheOneOfTheReadme() throws {
    let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    func lines(_ file: URL) throws -> [String] {
      try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false).map(
        String.init)
    }
    let readme = try lines(here.appending(path: "../../../README.md").standardized)
    let start = try #require(readme.firstIndex(of: "import KizunaDoorbell"))
    let shown = readme[start...].drop { $0 != "do {" }.prefix { $0 != "```" }
    let compiled = try lines(here.appending(path: "ReadmeExample.swift")).drop { $0 != "do {" }.prefix { $0 != "" }
      .dropLast().map { $0.replacing("load(file: file)", with: "load(file: \"gateway.json\")") }
    #expect(Array(shown) == compiled)
    #expect(shown.count > 10)
  }

  @Test func works() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "kizuna-readme-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let stack = try await LocalStack.start(
      LocalStackConfiguration(
        tables: ["todos": SyncTable(bucketColumn: "owner_id", includesKeyColumns: true)],
        users: [.init(email: "ann@example.com", password: "pw")]))
    let file = folder.appending(path: "gateway.json")
    try """
    {"url": "\(stack.url)", "publishableKey": "\(stack.publishableKey)", "database": "todos.db",
     "tables": {"todos": {"bucket": {"owner": "owner_id"}, "columns": {"title": "text", "done": "boolean"}}},
     "session": {"email": "ann@example.com", "password": "pw"}}
    """.write(to: file, atomically: true, encoding: .utf8)
    var printed: [String] = []
    await readmeExample(file.path) { printed.append($0) }
    #expect(printed == ["water the plants"])
    #expect(await stack.server.rowCount("todos") == 1)
    // A wrong configuration is a sentence and no crash.
    printed = []
    await readmeExample(folder.path + "/none.json") { printed.append($0) }
    #expect(printed.count == 1 && printed[0].contains("give --config a file") == true)
    try await stack.stop()
  }
}
