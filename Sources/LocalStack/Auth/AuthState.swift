import HostKit

/// One elementary change of what the auth service remembers.
package enum AuthChange: Hashable, Sendable {
  case session(id: String, user: String)
  case token(String, RefreshToken)
  /// Forgets a session with all its tokens.
  case ended(session: String)
}

package struct RefreshToken: Hashable, Sendable {
  package var session: String
  /// The token it replaced.
  package var parent: String?
  package var isRevoked: Bool
  /// Seconds since 1970.
  package var changedAt: Int64

  package init(session: String, parent: String? = nil, isRevoked: Bool = false, changedAt: Int64) {
    self.session = session
    self.parent = parent
    self.isRevoked = isRevoked
    self.changedAt = changedAt
  }
}

/// Sessions and their rotating refresh tokens, as a value: each refresh revokes the token it used and makes the next.
///
/// A token that was used already is a theft, with two exceptions: it is the parent of the token that is current now
/// (the answer of that refresh was lost), or it was used moments ago. Those get the current token again; a theft ends
/// the session.
package struct AuthState: Sendable {
  private(set) var sessions: [String: String] = [:]
  private(set) var tokens: [String: RefreshToken] = [:]

  package init() {}

  package enum Refresh: Sendable, Equatable {
    case granted(session: String, user: String, token: String)
    case unknown
    case reused
  }

  package mutating func apply(_ change: AuthChange) {
    switch change {
    case .session(let id, let user): sessions[id] = user
    case .token(let text, let token): tokens[text] = token
    case .ended(let session):
      sessions[session] = nil
      tokens = tokens.filter { $0.value.session != session }
    }
  }

  /// What a refresh does.
  ///
  /// - Parameters:
  ///   - newToken: used when a new token is called for.
  ///   - now: seconds since 1970.
  package func refresh(
    _ text: String, newToken: String, now: Int64, reuseInterval: Int64
  ) -> (outcome: Refresh, changes: [AuthChange]) {
    guard let used = tokens[text], let user = sessions[used.session] else { return (.unknown, []) }
    guard used.isRevoked else {
      var revoked = used
      (revoked.isRevoked, revoked.changedAt) = (true, now)
      let next = RefreshToken(session: used.session, parent: text, changedAt: now)
      return (
        .granted(session: used.session, user: user, token: newToken), [.token(text, revoked), .token(newToken, next)]
      )
    }
    let current = tokens.first { $0.value.session == used.session && !$0.value.isRevoked }
    if let current, current.value.parent == text || now <= used.changedAt + reuseInterval {
      return (.granted(session: used.session, user: user, token: current.key), [])
    }
    return (.reused, [.ended(session: used.session)])
  }

  /// Everything this state consists of, in a fixed order.
  var changes: [AuthChange] {
    sessions.sorted { $0.key < $1.key }.map { .session(id: $0.key, user: $0.value) }
      + tokens.sorted { $0.key < $1.key }.map { .token($0.key, $0.value) }
  }
}

extension AuthChange {
  var json: JSONValue {
    switch self {
    case .session(let id, let user): return ["k": "session", "id": .string(id), "user": .string(user)]
    case .token(let text, let token):
      return [
        "k": "token", "token": .string(text), "session": .string(token.session),
        "parent": .string(orNull: token.parent), "revoked": .bool(token.isRevoked), "at": .int(token.changedAt),
      ]
    case .ended(let session): return ["k": "ended", "id": .string(session)]
    }
  }

  init?(_ json: JSONValue) {
    switch json["k"]?.stringValue {
    case "session":
      guard let id = json["id"]?.stringValue, let user = json["user"]?.stringValue else { return nil }
      self = .session(id: id, user: user)
    case "token":
      guard let text = json["token"]?.stringValue, let session = json["session"]?.stringValue,
        let revoked = json["revoked"]?.boolValue, let at = json["at"]?.numberValue?.int64
      else { return nil }
      let parent = json["parent"]?.stringValue
      self = .token(text, RefreshToken(session: session, parent: parent, isRevoked: revoked, changedAt: at))
    case "ended":
      guard let id = json["id"]?.stringValue else { return nil }
      self = .ended(session: id)
    default: return nil
    }
  }
}
