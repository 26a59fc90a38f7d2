/// What secrets may consist of. A line break in one that becomes a header would end the header, and one that slipped in
/// with a pasted text is a mistake that a server explains badly. Sentences never quote the secret.
public enum SecretText {
  public enum Form: Sendable, Hashable {
    /// A key or a token: it travels in headers and addresses, so it is visible ASCII without spaces.
    case token
    /// A password or a signing secret: any text without control characters.
    case text
  }

  /// Nil when `text` has the form, else what is wrong, to be put after a name: "… must not hold a line break".
  public static func problem(_ text: String, _ form: Form) -> String? {
    if text.isEmpty { return "must not be empty" }
    if let wrong = controlProblem(text) { return wrong }
    guard form == .token, let other = text.unicodeScalars.first(where: { !("!"..."~").contains($0) }) else {
      return nil
    }
    return other == " " ? "must not hold a space" : "must hold only the characters of a token: ASCII without spaces"
  }

  /// Nil for a text without control characters, else what is wrong.
  public static func controlProblem(_ text: String) -> String? {
    guard let control = text.unicodeScalars.first(where: { $0.properties.generalCategory == .control }) else {
      return nil
    }
    return control == "\n" || control == "\r" ? "must not hold a line break" : "must not hold control characters"
  }
}
