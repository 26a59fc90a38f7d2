import HostKit
import KizunaSync

/// The sentence for a failed sync that may be logged, kept and shown: what failed and what to do about it.
///
/// Of an answer only what `ServerAnswer` makes of it is spelled. Everything else (the store's, the network's, our own
/// refusals) is ours already.
enum FailureSentence {
  /// - Parameter exchange: the last call of the run that failed, nil when it made none.
  static func of(_ error: KizunaSyncError, last exchange: ObservedHTTP.Exchange?) -> String {
    guard let exchange, speaksOfServer(error) else { return error.message }
    switch exchange.outcome {
    // Whose answer is too large is not all there is to say of it.
    case .failed(let failure) where failure.kind == .tooLarge: return error.message
    case .failed(let failure): return failure.message
    case .answered(let status, _) where (200..<300).contains(status): return error.message
    case .answered(413, _) where exchange.requestBytes < RemoteFailure.surelySmall:
      return RemoteFailure.sentence(refusedForNoSize: exchange.function, "a request of \(exchange.requestBytes) bytes")
    case .answered(let status, let code):
      let answer = ServerAnswer(status: status, code: code, refusal: exchange.refusal)
      // The client's own sentence knows the tables.
      return error.message.hasPrefix(answer.head(of: exchange.function))
        ? error.message : answer.sentence(of: exchange.function)
    }
  }

  /// Whether the error is about how the server answered, or that it did not.
  private static func speaksOfServer(_ error: KizunaSyncError) -> Bool {
    switch ErrorCode(rawValue: error.code) {
    case .remote, .permanentTransport: true
    default: false
    }
  }
}
