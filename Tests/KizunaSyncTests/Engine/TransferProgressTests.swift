import Testing

@testable import KizunaSync

/// A server must not keep a run going for ever.
@Suite struct TransferProgressTests {
  private typealias Fault = TransferProgress.Fault

  /// Follows `cursors` as a client does, beginning at `0`.
  /// - Returns: after how many pages which fault was found.
  private func follow(_ cursors: some Sequence<String>, isEmpty: Bool = false) -> (pages: Int, fault: Fault?) {
    var progress = TransferProgress()
    var (asked, pages) = ("0", 0)
    for next in cursors {
      pages += 1
      do throws(Fault) { _ = try progress.goOn(asked: asked, next: next, isEmpty: isEmpty) } catch {
        return (pages, error)
      }
      asked = next
    }
    return (pages, nil)
  }

  @Test func aTransferThatGetsOnIsNoFault() {
    #expect(follow((1...9_000).map { "0:\($0)" }, isEmpty: true).fault == nil)
    #expect(follow((1...90_000).map { "0:\($0)" }).fault == nil)
    // Once or twice in between it waits.
    #expect(follow(["0:1", "0:1", "0:1", "0:2", "0:2", "0:2", "0:3"]).fault == nil)
  }

  @Test func theSameCursorThreeTimesIsOne() {
    let (pages, fault) = follow(["0:1", "0:1", "0:1", "0:1"])
    #expect(pages == 4 && fault == .standsStill)
    #expect(follow(["0", "0", "0"]).fault == .standsStill)
  }

  /// However long it is, and however late it begins.
  @Test(arguments: [2, 3, 7, 50, 1_000], [0, 1, 40])
  func aCircleIsOne(length: Int, lead: Int) {
    let cursors = (0..<lead).map { "9:\($0)" } + (0..<200 + 10 * length).map { "0:\($0 % length)" }
    let (pages, fault) = follow(cursors)
    #expect(fault == .goesInCircles)
    #expect(pages <= lead * 3 + length * 4)
  }

  @Test func emptyPagesWithoutEndAreOne() {
    let (pages, fault) = follow((1...20_000).lazy.map { "0:\($0)" }, isEmpty: true)
    #expect(pages == TransferProgress.longestEmptyStretch && fault == .neverEnds(pages: pages))
    #expect(follow((1...200_000).lazy.map { "0:\($0)" }).fault == .neverEnds(pages: TransferProgress.mostPages))
  }

  @Test func aCheckpointExpiresOnce() throws {
    var progress = TransferProgress()
    try progress.expire()
    #expect(try progress.goOn(asked: "0", next: "0:1", isEmpty: false))
    #expect(throws: Fault.expiresAgain) { try progress.expire() }
  }

  /// The app changed a bucket: the same cursors come again, rightly.
  @Test func startingOverIsNoCircle() throws {
    var progress = TransferProgress()
    for _ in 0..<10 {
      #expect(try progress.goOn(asked: "0", next: "0:1", isEmpty: false))
      #expect(try progress.goOn(asked: "0:1", next: "0:2", isEmpty: false))
    }
  }
}
