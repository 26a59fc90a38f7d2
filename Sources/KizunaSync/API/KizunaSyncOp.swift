/// What a write does.
public enum KizunaSyncOp: String, Sendable {
  case insert, update, delete
}

/// What `select(count:)` counts with. A replica always knows the exact number, so all three give it.
public enum KizunaSyncCountOption: String, Sendable {
  case exact, planned, estimated
}

/// How the words of a text search are read.
public enum KizunaSyncTextSearchType: String, Sendable {
  /// Every word must occur.
  case plain
  /// The whole text must occur as it stands.
  case phrase
  /// Quoted phrases and words, as in a web search box.
  case websearch
}
