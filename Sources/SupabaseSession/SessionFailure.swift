import HostKit

/// Why there is no access token. The sentence names the server's host, a file or an error code of the server, never a
/// token, a key, a password or an e-mail address.
public struct SessionFailure: Error, Sendable, Hashable, CustomStringConvertible {
  public enum Kind: String, Sendable {
    /// The credentials were refused: wrong password, refresh token used up, access token expired or refused. Only
    /// somebody's action helps; it is tried again rarely.
    case authentication
    /// The server could not be reached, was overloaded or failed. It is tried again soon.
    case transient
    /// The address, the key or a file is wrong.
    case configuration
    /// `stop()` was called.
    case stopped
  }

  public let kind: Kind
  public let message: String
  /// Nanoseconds the server asked to wait.
  public let retryAfter: UInt64?

  public init(_ kind: Kind, _ message: String, retryAfter: UInt64? = nil) {
    self.kind = kind
    self.message = message
    self.retryAfter = retryAfter
  }

  public var description: String { message }

  /// How a command that needed the token ends.
  public var exitCode: ExitCode {
    switch kind {
    case .authentication: .authentication
    case .transient: .unreachable
    case .configuration: .configuration
    case .stopped: .interrupted
    }
  }
}
