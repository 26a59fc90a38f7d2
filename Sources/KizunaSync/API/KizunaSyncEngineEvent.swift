/// What the client reports after a commit (Kizuna wire contract §14). Delivered in order on the client's delivery thread.
public enum KizunaSyncEngineEvent: Equatable, Sendable {
  /// Rows may have changed: after a local write of any process, a pull that committed, a verdict or dead letter that
  /// reverted rows, and a reset.
  case localChanged
  /// A write was refused, and the row was put back.
  case mutationRejected(mutationId: String, reason: String)
  /// Raised by each local write with the number of writes the next run will send.
  case queueDepth(depth: UInt32)
  /// Sync is blocked until ``KizunaSyncClient/reset()``: `reset_required` or `identity_changed`.
  case resetRequired(reason: String?)
  /// The server forgot the checkpoint; the next pull reads everything again.
  case checkpointExpired
  /// An all-or-nothing batch was refused because of the named member.
  case batchAborted(offenderMutationId: String, reason: String)
  /// A write was given up after repeated permanent failures, and the row was put back.
  case deadLetter(mutationId: String, reason: String)
  /// Another device's write replaced a value of this one.
  case columnOverwritten(
    table: String, pk: String, column: String, loserValueJson: String, winnerMutationId: String, conflictMode: String)
}
