import Foundation
import HostKit
import Testing

@Suite final class FileEventsTests {
  private let folder: String

  init() throws {
    folder = NSTemporaryDirectory() + "kizuna-events-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private func make(_ name: String) { close(creat("\(folder)/\(name)", 0o644)) }

  @Test func watchesOfOneFolderGetWhatEachAskedFor() async throws {
    let created = AsyncStream.makeStream(of: String.self)
    let moved = AsyncStream.makeStream(of: String.self)
    let first = try FileEvents.shared.watch(folder, for: .created) { created.continuation.yield("\($1)") }
    let second = try FileEvents.shared.watch(folder, for: .movedIn) { moved.continuation.yield("\($1)") }
    make("a")
    rename("\(folder)/a", "\(folder)/b")
    make("c")
    var creations = created.stream.makeAsyncIterator()
    #expect(await creations.next() == "a")
    #expect(await creations.next() == "c")
    var moves = moved.stream.makeAsyncIterator()
    #expect(await moves.next() == "b")
    // One goes; the other, which shares the kernel's watch, stays.
    first.cancel()
    first.cancel()
    make("d")
    rename("\(folder)/d", "\(folder)/e")
    #expect(await moves.next() == "e")
    second.cancel()
    created.continuation.finish()
    #expect(await creations.next() == nil)
  }

  @Test func aRemovedFileAndItsSuccessorAreTwo() async throws {
    let path = "\(folder)/a"
    make("a")
    let events = AsyncStream.makeStream(of: String.self)
    let old = try FileEvents.shared.watch(path, for: .modified) { _, _ in events.continuation.yield("old") }
    unlink(path)
    make("a")
    let new = try FileEvents.shared.watch(path, for: .modified) { _, _ in events.continuation.yield("new") }
    try "x".write(toFile: path, atomically: false, encoding: .utf8)
    var seen = events.stream.makeAsyncIterator()
    #expect(await seen.next() == "new")
    old.cancel()
    try "y".write(toFile: path, atomically: false, encoding: .utf8)
    #expect(await seen.next() == "new")
    new.cancel()
  }

  @Test func lettingGoEndsAWatch() async throws {
    final class Owner: Sendable {
      let gone: AsyncStream<Void>.Continuation
      init(_ gone: AsyncStream<Void>.Continuation) { self.gone = gone }
      func told() {}
      deinit { gone.finish() }
    }
    let gone = AsyncStream.makeStream(of: Void.self)
    do {
      let owner = Owner(gone.continuation)
      _ = try FileEvents.shared.watch(folder, for: .created) { _, _ in owner.told() }
    }
    for await _ in gone.stream {}
  }

  @Test func manyWatchesNeedOneInstance() throws {
    // The kernel's limit is 128 instances for all processes of a user.
    var watches: [FileEventWatch] = []
    for number in 0..<200 {
      make("\(number)")
      watches.append(try FileEvents.shared.watch("\(folder)/\(number)", for: .modified) { _, _ in })
    }
    #expect(watches.count == 200)
  }

  @Test func whatIsMissingCannotBeWatched() {
    #expect(throws: HostFileError(path: "/nowhere", code: ENOENT)) {
      try FileEvents.shared.watch("/nowhere", for: .created) { _, _ in }
    }
  }
}
