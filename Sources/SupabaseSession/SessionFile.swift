import HostKit

/// The session as it is kept between runs of a process: the newest refresh token, which works only once, and the access
/// token that came with it. The file is private to its owner (mode 0600).
struct SessionFile: Sendable, Equatable {
  /// `host:port` of the server and the name of the user; a file of another server or user is not used.
  var server: String
  var identity: String
  var refreshToken: Secret
  var accessToken: Secret?

  /// - Returns: nil when there is no file or it is of another server or user.
  /// - Throws: `HostFileError` when the file cannot be read or understood.
  static func read(_ path: String, server: String, identity: String) throws(HostFileError) -> SessionFile? {
    let bytes: [UInt8]
    do {
      bytes = try HostFile.read(path, maximumBytes: 1 << 20)
    } catch  where error.isMissing {
      return nil
    }
    guard let value = try? JSONValue(parsing: bytes), let refreshToken = value["refresh_token"]?.stringValue else {
      throw HostFileError(path: path, reason: "not a session file")
    }
    guard value["server"]?.stringValue == server, value["identity"]?.stringValue == identity, !refreshToken.isEmpty
    else { return nil }
    return SessionFile(
      server: server, identity: identity, refreshToken: Secret(refreshToken),
      accessToken: value["access_token"]?.stringValue.map(Secret.init))
  }

  /// Returns when the content is on the disk.
  func write(_ path: String) throws(HostFileError) {
    let value: JSONValue = [
      "server": .string(server), "identity": .string(identity), "refresh_token": .string(refreshToken.value),
      "access_token": .string(orNull: accessToken?.value),
    ]
    try DurableFile.replace(path, with: JSONWriter.data(value, indent: 2) + [0x0A], mode: 0o600)
  }
}

/// Reads and writes the session file of one user at one server; problems are reported, never thrown, because a session
/// without its file still works.
struct SessionStore: Sendable {
  let path: String
  let server: String
  let identity: String
  let log: HostLog

  func load() -> SessionFile? {
    do {
      return try SessionFile.read(path, server: server, identity: identity)
    } catch {
      log.warning("session.state_unreadable", ["reason": .string(error.reason)])
      return nil
    }
  }

  /// When this returns, the tokens are on the disk, or the failure is reported. They are used in either case: the refresh
  /// token before is spent, so refusing would end the session now instead of at the next start.
  func save(accessToken: String, refreshToken: Secret) {
    let file = SessionFile(
      server: server, identity: identity, refreshToken: refreshToken, accessToken: Secret(accessToken))
    do {
      try file.write(path)
    } catch {
      log.error("session.state_not_written", ["reason": .string(error.reason)])
    }
  }
}
