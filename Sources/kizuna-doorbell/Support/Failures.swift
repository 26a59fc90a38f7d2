import HTTPClient
import HostKit
import KizunaDoorbell
import KizunaSync
import SupabaseSession

/// Turns what the libraries throw into an exit code and a sentence. The one place where that is decided.
enum Failures {
  static func explain(_ error: any Error) -> CommandFailure? {
    switch error {
    case let error as GatewayError: CommandFailure(error.exitCode, error.message)
    case let error as SessionFailure: CommandFailure(error.exitCode, error.message)
    case let error as KizunaSyncError: CommandFailure(exitCode(of: error), error.message)
    case let error as HTTPError: CommandFailure(.unreachable, error.message)
    case let error as HostFileError: CommandFailure(.failure, error.description)
    case let error as ServerURLError: CommandFailure(.configuration, error.message)
    default: nil
    }
  }

  private static func exitCode(of error: KizunaSyncError) -> ExitCode {
    switch ErrorCode(rawValue: error.code) {
    case .configInvalid, .bucketUnset, .unknownTable: .configuration
    case .store, .storeBusy, .storeUnavailable: .database
    default: .failure
    }
  }
}
