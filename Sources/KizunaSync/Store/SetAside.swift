/// Why a synced table takes no part for now: it cannot take rows as it is, and the others must not wait for it.
struct SetAside: Equatable {
  /// A sentence for people, with the remedy.
  var reason: String
  /// nil when the schema is the cause: then only another schema ends it.
  var retry: Retry?

  /// A row was the cause. Other rows, or the same under other circumstances, may fit.
  struct Retry: Equatable {
    /// The state of the schemas it failed under; nil until that is known.
    var cookie: Int64?
    /// When to try again under the same schemas, on the replica's clock.
    var at: UInt64
  }
}

/// A table cannot take a row, and the transaction is undone because of it.
struct TableFailure: Error {
  var table: String
  /// A sentence for people, where `error` is none of SQLite's.
  var reason: String?
  var error: any Error
}
