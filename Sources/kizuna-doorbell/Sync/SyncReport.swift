import HostKit
import KizunaDoorbell
import KizunaSync

/// What `sync` prints, and the exit code that goes with it.
struct SyncReport {
  var outboxDepth: Int
  var rejected: Int
  var cursor: String
  var softBlock: String?
  var leftovers: SyncLeftovers
  /// Nanoseconds.
  var duration: UInt64
  /// Who did it: `sync` itself or a `run`.
  var by: String

  private var isDelivered: Bool { outboxDepth == 0 && rejected == 0 && softBlock == nil && leftovers.isEmpty }

  /// - Parameter arguments: the command's, which say how errors are written.
  func print(_ arguments: Arguments) -> ExitCode {
    StandardStreams.print(
      JSONWriter.text([
        "ok": .bool(isDelivered), "outbox_depth": .int(outboxDepth), "rejected": .int(rejected),
        "rejections": .int(leftovers.refused), "parked_rows": .int(leftovers.parkedRows),
        "set_aside": .array(leftovers.tablesSetAside.map(JSONValue.string)),
        "held_writes": .object(leftovers.heldWrites.mapValues(JSONValue.int)),
        "cursor": .string(cursor), "blocked": .string(orNull: softBlock),
        "duration_ms": .int(Int(duration.inMilliseconds.rounded())), "by": .string(by),
      ]))
    if let softBlock {
      LogOutput.printFailure(
        SoftBlock.sentence(softBlock), .workLeft, program: "kizuna-doorbell", arguments: arguments)
    }
    for sentence in leftovers.sentences {
      LogOutput.printFailure(sentence, .workLeft, program: "kizuna-doorbell", arguments: arguments)
    }
    return isDelivered ? .ok : .workLeft
  }
}
