import HostKit
import Testing

@testable import KizunaSync

@Suite struct OverlayTests {
  private func entry(_ seq: Int64, _ op: KizunaSyncOp, _ columns: String = "{}", transforms: String? = nil)
    -> OutboxEntry
  {
    OutboxEntry(seq: seq, op: op, columns: columns, transforms: transforms)
  }

  @Test func entriesLieOverTheImageInOrder() {
    let image = RowImage(row: ["a": 1, "b": 1], tombSeq: nil)
    #expect(Overlay.visible(image: image, entries: []) == ["a": 1, "b": 1])
    #expect(
      Overlay.visible(
        image: image, entries: [entry(1, .update, "{\"a\":2}"), entry(2, .update, "{\"a\":3,\"c\":null}")])
        == ["a": 3, "b": 1, "c": nil])
    #expect(Overlay.visible(image: image, entries: [entry(1, .delete)]) == nil)
    #expect(Overlay.visible(image: image, entries: [entry(1, .delete), entry(2, .insert, "{\"a\":5}")]) == ["a": 5])
  }

  @Test func aDeleteOfTheServerIsNotUndone() {
    let tombstone = RowImage(row: nil, tombSeq: 5)
    #expect(Overlay.visible(image: tombstone, entries: [entry(6, .update, "{\"a\":1}")]) == nil)
    #expect(Overlay.visible(image: tombstone, entries: [entry(4, .insert, "{\"a\":1}")]) == nil)
    #expect(Overlay.visible(image: tombstone, entries: [entry(6, .insert, "{\"a\":1}")]) == ["a": 1])
  }

  @Test func onlyAnUpdateOfARowNeverSeenBringsItToLight() {
    let update = [entry(1, .update, "{\"a\":1}")]
    #expect(Overlay.visible(image: RowImage(row: nil, tombSeq: RowImage.unseen), entries: update) == ["a": 1])
    #expect(Overlay.visible(image: RowImage(row: nil, tombSeq: RowImage.missing), entries: update) == nil)
    #expect(Overlay.visible(image: RowImage(row: nil, tombSeq: nil), entries: update) == nil)
  }

  @Test func transformsOfQueuedWritesNeverFail() {
    let image = RowImage(row: ["n": "text", "tags": 5], tombSeq: nil)
    let transforms = "{\"n\":{\"op\":\"increment\",\"by\":1},\"tags\":{\"op\":\"arrayUnion\",\"values\":[1]}}"
    #expect(
      Overlay.visible(image: image, entries: [entry(1, .update, transforms: transforms)]) == ["n": "text", "tags": 5])
  }
}
