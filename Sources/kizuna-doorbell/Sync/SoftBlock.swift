/// What to say about a replica that does not synchronise any more.
enum SoftBlock {
  static func sentence(_ reason: String) -> String {
    switch reason {
    case "reset_required":
      "the server refuses this data version as too old; update the app and its schemaVersion, "
        + "then empty the database with `kizuna-doorbell reset`"
    case "identity_changed":
      "the database belongs to another user than the one signed in; use another database, "
        + "or empty this one with `kizuna-doorbell reset`"
    default: "the replica is blocked: \(reason)"
    }
  }
}
