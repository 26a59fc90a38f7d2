/// Where the replica stands.
public struct KizunaSyncCheckpoint: Equatable, Sendable {
  /// The durable pull cursor, opaque; `"0"` before the first pull.
  public let cursor: String
  /// Sync does nothing until ``KizunaSyncClient/reset()``.
  public let softBlocked: Bool
  /// `reset_required` or `identity_changed`.
  public let softBlockReason: String?

  public init(cursor: String, softBlocked: Bool, softBlockReason: String?) {
    self.cursor = cursor
    self.softBlocked = softBlocked
    self.softBlockReason = softBlockReason
  }
}

/// A write the server did not take, kept until it is dismissed.
public struct KizunaSyncRejection: Equatable, Sendable {
  public let mutationId: String
  public let table: String
  public let pk: String
  /// `REJECTED`, `SUPERSEDED`, `BATCH_ABORTED` or `DEAD_LETTER`.
  public let kind: String
  public let reason: String
  public let changedColumns: [String]
  /// The row as the server showed it, as JSON; empty when there is none.
  public let serverRowJson: String
  /// Milliseconds since 1970.
  public let at: Int64
  public let dismissed: Bool

  public init(
    mutationId: String, table: String, pk: String, kind: String, reason: String, changedColumns: [String],
    serverRowJson: String, at: Int64, dismissed: Bool
  ) {
    self.mutationId = mutationId
    self.table = table
    self.pk = pk
    self.kind = kind
    self.reason = reason
    self.changedColumns = changedColumns
    self.serverRowJson = serverRowJson
    self.at = at
    self.dismissed = dismissed
  }
}

/// A column value that a peer's write replaced, kept until it is dismissed.
public struct KizunaSyncOverwrite: Equatable, Sendable {
  public let id: Int64
  public let table: String
  public let pk: String
  public let column: String
  public let loserValueJson: String
  public let winnerMutationId: String
  public let conflictMode: String
  public let winnerSeq: String?
  /// Milliseconds since 1970.
  public let at: Int64
  public let dismissed: Bool

  public init(
    id: Int64, table: String, pk: String, column: String, loserValueJson: String, winnerMutationId: String,
    conflictMode: String, winnerSeq: String?, at: Int64, dismissed: Bool
  ) {
    self.id = id
    self.table = table
    self.pk = pk
    self.column = column
    self.loserValueJson = loserValueJson
    self.winnerMutationId = winnerMutationId
    self.conflictMode = conflictMode
    self.winnerSeq = winnerSeq
    self.at = at
    self.dismissed = dismissed
  }
}
