/// What to say about a replica that does not synchronise any more.
package enum SoftBlock {
  package static func sentence(_ reason: String) -> String {
    switch reason {
    case "reset_required":
      "the server refuses this data version as too old; update the app and its schemaVersion, "
        + "then empty the database with `kizuna-doorbell reset`"
    case "identity_changed":
      "a client gave this database another user's token, which stops its synchronisation; "
        + "empty it with `kizuna-doorbell reset`, or use another database"
    default: "the replica is blocked: \(reason)"
    }
  }

  static let anotherUser =
    "the database belongs to another user than the one signed in; sign in as that user, use another database, "
    + "or empty this one with `kizuna-doorbell reset`"
}
