import HTTPClient
import HostKit
import KizunaSync
import SupabaseSession

/// Why a gateway could not start, or a sync could not be done: a kind for programs and a sentence for people.
public struct GatewayError: Error, Sendable, Hashable, CustomStringConvertible {
  public enum Kind: String, Sendable {
    /// An address, a key, a table or a file in the configuration is wrong.
    case configuration
    /// The server refused the credentials.
    case authentication
    /// Another process, or another client of this one, synchronises the database.
    case locked
    /// The database or the disk failed.
    case database
    /// The server could not be reached, or failed for a moment.
    case unreachable
    case other
  }

  public let kind: Kind
  /// One sentence, with the remedy where there is one. No token, key, full address or value.
  public let message: String

  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  public var description: String { message }

  /// How a command that met it ends.
  public var exitCode: ExitCode {
    switch kind {
    case .configuration: .configuration
    case .authentication: .authentication
    case .locked: .locked
    case .database: .database
    case .unreachable: .unreachable
    case .other: .failure
    }
  }
}

extension GatewayError {
  init(_ failure: SessionFailure) {
    let kind: Kind =
      switch failure.kind {
      case .authentication: .authentication
      case .transient: .unreachable
      case .configuration: .configuration
      case .stopped: .other
      }
    self.init(kind, failure.message)
  }

  /// Sorts an error of the client.
  ///
  /// - Parameter exchange: the last call of the run, which tells a missing network from a refused token; the
  ///   catalogue's code is the same for both.
  init(_ error: KizunaSyncError, last exchange: ObservedHTTP.Exchange?) {
    let kind: Kind =
      switch ErrorCode(rawValue: error.code) {
      case .configInvalid, .bucketUnset, .unknownTable, .attachmentPortsMissing: .configuration
      case .store, .storeBusy, .storeUnavailable: .database
      case .permanentTransport where ServerAnswer.isMistake(error.message): .configuration
      case .json where exchange?.isForeign == true: .unreachable
      case .remote:
        switch exchange?.outcome {
        case .answered where exchange?.refusal != nil: .authentication
        case .failed(let failure) where failure.kind == .tooLarge: .other
        case .failed: .unreachable
        case .answered(let status, _) where status >= 500 || status == 408 || status == 429: .unreachable
        default: .other
        }
      default: .other
      }
    self.init(kind, FailureSentence.of(error, last: exchange))
  }

  /// Sorts whatever ended a run.
  init(run error: any Error, last exchange: ObservedHTTP.Exchange?) {
    switch error {
    case let error as GatewayError: self = error
    case let error as KizunaSyncError: self.init(error, last: exchange)
    case let error as SessionFailure: self.init(error)
    // Of a type nobody here knows the words.
    default: self.init(.other, "the run failed with an error of type \(type(of: error))")
    }
  }

  /// The catalogue's code for an error that did not bring one.
  var code: ErrorCode {
    switch kind {
    case .configuration: .configInvalid
    case .locked: .storeUnavailable
    case .database: .store
    case .authentication, .unreachable, .other: .remote
    }
  }
}
