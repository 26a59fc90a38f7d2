import Foundation
import HostKit

/// Every error the client throws: a code of the closed catalogue (Kizuna wire contract §15) and a sentence for people.
///
/// Apps switch on ``code``. Codes of the server or the transport (`42501`, `AUTH_SESSION_MISSING`, …) appear only inside
/// ``message``; the catalogue code is then `PERMANENT_TRANSPORT` or `REMOTE`.
public enum KizunaSyncError: Error, Equatable, Sendable, CustomStringConvertible, LocalizedError {
  case engine(code: String, message: String)

  package init(_ code: ErrorCode, _ message: String) {
    self = .engine(code: code.rawValue, message: message)
  }

  public var code: String {
    switch self {
    case .engine(let code, _): code
    }
  }

  public var message: String {
    switch self {
    case .engine(_, let message): message
    }
  }

  /// `CODE: message`.
  public var description: String { "\(code): \(message)" }

  public var errorDescription: String? { description }

  /// Whether the same call may succeed later without anybody changing anything.
  public var isRetryable: Bool { ErrorCode(rawValue: code)?.isRetryable ?? false }
}
