/// When the stages of one request happened, on `CLOCK_MONOTONIC` in nanoseconds: one clock for all processes of a host.
package struct SyncTrace: Sendable, Equatable {
  package enum Kind: String, Sendable {
    case pull, push
  }

  package var kind: Kind
  /// The last byte of the request left; 0 where the transport does not know.
  package var requestSentAt: UInt64
  package var responseReceivedAt: UInt64
  /// The transaction that applied the answer returned; when there was nothing to write, the moment that was known.
  package var committedAt: UInt64
  /// The durable cursor afterwards.
  package var cursor: String
  package var rows: Int
  package var hasMore: Bool
}
