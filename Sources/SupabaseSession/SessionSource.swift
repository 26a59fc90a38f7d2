import HTTPClient
import HostKit

extension SupabaseSession {
  /// Where the tokens come from.
  public enum Source: Sendable {
    /// A fixed token. When it expires there is none.
    case accessToken(String)
    /// A file that somebody else writes; read again when it changes.
    case accessTokenFile(String)
    /// `password` is asked for each sign-in, so that it may come from a file that changes.
    case password(email: String, password: @Sendable () throws -> String)
    /// A session that was begun elsewhere. Needs a `stateFile`, or it ends with the process.
    case refreshToken(String)
  }
}

extension SupabaseSession.Source {
  /// The name under which a session of this source is kept; nil for sources without one.
  var identity: String? {
    switch self {
    case .accessToken, .accessTokenFile: nil
    case .password(let email, _): "password:\(email)"
    // Told apart without being written down: another token given later begins another session.
    case .refreshToken(let token): "refresh:\(Fingerprint.of(token))"
    }
  }

  var machine: SessionMachine {
    switch self {
    case .accessToken, .accessTokenFile: SessionMachine(.reader)
    case .password: SessionMachine(.server(hasPassword: true))
    case .refreshToken(let token): SessionMachine(.server(hasPassword: false), refreshToken: Secret(token))
    }
  }

  /// What the token is called in a configuration.
  var tokenName: String {
    if case .accessTokenFile(let path) = self {
      "what the file \"\(path)\" (accessTokenFile) holds"
    } else {
      "what is given as accessToken"
    }
  }

  /// The token that somebody else made. Blocks on the disk.
  /// - Throws: `SessionFailure` of kind configuration.
  func read() throws(SessionFailure) -> String {
    switch self {
    case .accessToken(let token): return token
    case .accessTokenFile(let path):
      let text: String
      do throws(HostFileError) { text = try HostFile.readText(path, maximumBytes: 1 << 16) } catch {
        throw SessionFailure(
          .configuration,
          "the access token's file \"\(path)\" cannot be read: \(error.reason); correct accessTokenFile, or write the token there"
        )
      }
      let words = text.split(whereSeparator: \.isWhitespace)
      guard words.count == 1, SecretText.problem(String(words[0]), .token) == nil else {
        throw SessionFailure(
          .configuration, "the file \"\(path)\" (accessTokenFile) must hold one access token and nothing else")
      }
      return String(words[0])
    case .password, .refreshToken:
      throw SessionFailure(.configuration, "the server makes the tokens of this session")
    }
  }

  /// The request for a token. May block on the disk for the password.
  /// - Throws: `SessionFailure` of kind configuration.
  func request(_ way: SessionMachine.Way, server: ServerURL, key: String) throws(SessionFailure) -> HTTPRequest {
    var email = ""
    var password = ""
    if way == .signIn, case .password(let name, let read) = self {
      email = name
      do { password = try read() } catch {
        throw SessionFailure(
          .configuration, "the password cannot be read: \(error); correct passwordFile, or write the password there")
      }
    }
    return TokenGrant.request(way, email: email, password: password, server: server, key: key)
  }
}
