/// Puts together, from what the parts report on their own, when a ring passed each point of its way.
///
/// A pure value. A run answers all rings since the previous run began, so the trace starts at the first of them; a run
/// that had another reason, that failed, or that brought nothing new leaves no trace.
struct RingTracer: Sendable, Equatable {
  /// What one run of the scheduler left behind.
  struct Run: Sendable, Equatable {
    /// When the first wake came that the run answers.
    var wokenAt: UInt64
    var startedAt: UInt64
    var succeeded: Bool
    /// The last pull: sent, answered; nil when there was none.
    var pull: (sentAt: UInt64, receivedAt: UInt64)?
    /// When the transaction that closed a pull was last committed; 0 for never.
    var committedAt: UInt64

    static func == (left: Run, right: Run) -> Bool {
      left.wokenAt == right.wokenAt && left.startedAt == right.startedAt && left.succeeded == right.succeeded
        && left.pull?.sentAt == right.pull?.sentAt && left.pull?.receivedAt == right.pull?.receivedAt
        && left.committedAt == right.committedAt
    }
  }

  /// Frames that no run has answered yet, oldest first.
  private var frames: [UInt64] = []
  /// More than these wait only while nothing runs; what they say about latency is nothing then.
  private static let maximumFrames = 256

  /// A frame came that rings.
  mutating func rang(receivedAt: UInt64) {
    guard receivedAt > 0, frames.count < Self.maximumFrames else { return }
    frames.append(receivedAt)
  }

  /// A run ended.
  mutating func finished(_ run: Run) -> RingTrace? {
    // Frames that came after the run had begun belong to the trailing run, even if this one already saw their rows.
    let answered = frames.filter { $0 <= run.startedAt }
    frames.removeAll { $0 <= run.startedAt }
    guard run.succeeded, let first = answered.min(), let pull = run.pull else { return nil }
    let trace = RingTrace(
      frameReceivedAt: first, wokenAt: run.wokenAt, requestSentAt: pull.sentAt, responseReceivedAt: pull.receivedAt,
      committedAt: run.committedAt)
    // A run that was woken by something else before the frame came fails here.
    return trace.isOrdered ? trace : nil
  }
}
