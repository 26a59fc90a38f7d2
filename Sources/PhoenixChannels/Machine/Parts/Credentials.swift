/// The newest token and what is known about it.
struct Credentials: Sendable {
  /// Whether joins wait for a token.
  let required: Bool
  private(set) var token: String?
  /// Counts tokens, so that a refusal of an older one can be told from a refusal of this one.
  private(set) var serial = 0
  private(set) var refusedSerial: Int?
  private(set) var isWithdrawn = false
  /// The token is about to end, and another was asked for.
  private(set) var isEnding = false
  /// A request is out.
  var isAsking = false
  /// Fresh credentials were asked for since a token last proved good. Asking again would be spinning.
  private(set) var freshAsked = false
  /// The next question is for a fresh token.
  var wantsFresh = false
  /// Requests in a row that came back without an answer.
  var unavailableStreak = 0

  init(required: Bool) {
    self.required = required
  }

  var isRefused: Bool { refusedSerial == serial }

  /// Nothing that was received so far is worth a connection.
  var areUseless: Bool { isWithdrawn || isRefused }

  /// A join may be sent.
  var canJoin: Bool { !areUseless && !isEnding && (token != nil || !required) }

  /// - Returns: whether this is another token than before.
  mutating func receive(_ token: String) -> Bool {
    isWithdrawn = false
    isEnding = false
    guard token != self.token else { return false }
    self.token = token
    serial += 1
    return true
  }

  mutating func withdraw() {
    isWithdrawn = true
    isEnding = false
    token = nil
    serial += 1
  }

  /// - Returns: whether there is a token that is worth renewing.
  mutating func end() -> Bool {
    isEnding = required && token != nil && !areUseless
    return isEnding
  }

  /// There is no other one now, so the old one must do: it may not have ended yet.
  mutating func makeDo() { isEnding = false }

  /// The token of that serial was refused.
  mutating func refused(_ serial: Int) {
    if serial == self.serial { refusedSerial = serial }
  }

  /// The token of that serial was good for a while. An accepted join alone shows nothing: the server may end the channel
  /// with the next breath.
  mutating func proved(_ serial: Int) {
    if serial == self.serial, !isRefused { freshAsked = false }
  }

  /// Whether fresh ones may be asked for; true once until a token proves good.
  mutating func mayAskFresh() -> Bool {
    guard required, !freshAsked else { return false }
    freshAsked = true
    return true
  }

  /// A new start: somebody may have signed in meanwhile.
  mutating func restart() {
    isWithdrawn = false
    unavailableStreak = 0
    forgive()
  }

  /// A person asks to try once more.
  mutating func forgive() {
    freshAsked = false
    refusedSerial = nil
  }
}

extension Credentials: CustomStringConvertible, CustomDebugStringConvertible {
  /// Never the token.
  var description: String { "Credentials(token: \(token == nil ? "none" : "number \(serial)"))" }
  var debugDescription: String { description }
}
