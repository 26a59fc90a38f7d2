import Foundation
import HostKit
import Testing

@Suite final class FileWatchTests {
  private let folder: String

  init() throws {
    folder = NSTemporaryDirectory() + "kizuna-watch-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private func write(_ text: String, to name: String, atomically: Bool = false) throws {
    try text.write(toFile: "\(folder)/\(name)", atomically: atomically, encoding: .utf8)
  }

  @Test func writingReplacingAndMakingAreChanges() async throws {
    let changes = AsyncStream.makeStream(of: String.self)
    let path = folder + "/token"
    let watch = try FileWatch(path) { changes.continuation.yield((try? HostFile.readText(path)) ?? "") }
    var seen = changes.stream.makeAsyncIterator()
    for (content, atomically) in [("one", false), ("two", false), ("three", true), ("four", true)] {
      try write(content, to: "token", atomically: atomically)
      while let text = await seen.next(), text != content {}
    }
    watch.stop()
    watch.stop()
  }

  /// A release folder behind a link, and one behind that: `ln -sfn`, or a link that is renamed over the old one.
  @Test func aFolderThatIsTurnedElsewhereIsAChange() async throws {
    let changes = AsyncStream.makeStream(of: String.self)
    let manager = FileManager.default
    for name in ["one", "two", "three"] {
      try manager.createDirectory(atPath: "\(folder)/\(name)/secrets", withIntermediateDirectories: true)
      try write(name, to: "\(name)/secrets/token")
    }
    try manager.createSymbolicLink(atPath: folder + "/release", withDestinationPath: "one")
    try manager.createSymbolicLink(atPath: folder + "/current", withDestinationPath: "release")
    let path = folder + "/current/secrets/token"
    let watch = try FileWatch(path) { changes.continuation.yield((try? HostFile.readText(path)) ?? "") }
    var seen = changes.stream.makeAsyncIterator()
    func turn(_ link: String, to goal: String) throws {
      try manager.createSymbolicLink(atPath: "\(folder)/new", withDestinationPath: goal)
      #expect(rename("\(folder)/new", "\(folder)/\(link)") == 0)
    }
    try turn("release", to: "two")
    while let text = await seen.next(), text != "two" {}
    // Also in the folder it leads to now.
    try write("four", to: "two/secrets/token", atomically: true)
    while let text = await seen.next(), text != "four" {}
    try turn("current", to: "three")
    while let text = await seen.next(), text != "three" {}
    try manager.removeItem(atPath: folder + "/current")
    try manager.createSymbolicLink(atPath: folder + "/current", withDestinationPath: "one")
    while let text = await seen.next(), text != "one" {}
    watch.stop()
  }

  @Test func otherFilesAreNoChanges() async throws {
    let changes = AsyncStream.makeStream(of: Int.self)
    let count = Locked(0)
    let watch = try FileWatch("\(folder)/token") {
      changes.continuation.yield(
        count.withLock { count in
          count += 1
          return count
        })
    }
    for number in 0..<100 { try write("\(number)", to: "other") }
    try write("one", to: "token")
    var seen = changes.stream.makeAsyncIterator()
    _ = await seen.next()
    // Making and closing the file are two notices, which may arrive apart; a hundred others would be more.
    #expect(count.withLock { $0 } <= 2)
    watch.stop()
  }

  @Test func lettingGoEndsIt() async throws {
    final class Owner: Sendable {
      let gone: AsyncStream<Void>.Continuation
      init(_ gone: AsyncStream<Void>.Continuation) { self.gone = gone }
      func changed() {}
      deinit { gone.finish() }
    }
    let gone = AsyncStream.makeStream(of: Void.self)
    do {
      let owner = Owner(gone.continuation)
      _ = try FileWatch("\(folder)/token") { owner.changed() }
    }
    for await _ in gone.stream {}
  }

  @Test func aFolderThatIsMissingIsReported() {
    #expect(throws: HostFileError(path: "/nowhere", code: ENOENT)) { try FileWatch("/nowhere/token") {} }
  }
}
