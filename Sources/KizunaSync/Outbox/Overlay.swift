import HostKit

/// What the server last sent for a row that has entries in the outbox.
struct RowImage: Equatable {
  /// nil: the server has no such row, or none that this user may see.
  var row: RowMap?
  /// Of an image without a row: inserts queued after this outbox number show, older ones were overtaken by the delete.
  /// nil: no delete is known.
  var tombSeq: Int64?
  /// Of an image with a row: the last outbox number of the row that had been sent when a transfer brought it. The server may
  /// have had the row again after that write. nil: nothing had been sent, or no transfer brought it.
  var pulledAfter: Int64?

  /// `tombSeq` of a row that was never seen and is updated all the same: the only missing row an update brings to light.
  static let unseen: Int64 = -1
  /// `tombSeq` of a row that a complete transfer did not contain: queued inserts show, updates do not.
  static let missing: Int64 = 0
}

/// The visible row: the image with the outbox's entries over it, in order.
enum Overlay {
  static func visible(image: RowImage, entries: [OutboxEntry]) -> RowMap? {
    var row = image.row
    var wakes = row == nil && image.tombSeq == RowImage.unseen
    for entry in entries {
      switch entry.op {
      case .delete:
        row = nil
        wakes = false
      case .insert:
        if let tomb = image.tombSeq, entry.seq <= tomb { continue }
        row = merged(row, entry)
      case .update:
        // A delete of the server is never undone by an update.
        if row == nil && !wakes { continue }
        row = merged(row, entry)
      }
    }
    return row
  }

  private static func merged(_ row: RowMap?, _ entry: OutboxEntry) -> RowMap {
    var result = row ?? [:]
    if let columns = (try? JSONValue(parsing: entry.columns))?.objectValue {
      result.merge(columns) { _, new in new }
    }
    if let transforms = entry.transforms.flatMap({ try? JSONValue(parsing: $0) })?.objectValue {
      Transform.applyLeniently(transforms, to: &result)
    }
    return result
  }
}
