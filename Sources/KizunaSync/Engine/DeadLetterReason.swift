import HostKit

/// Why a write was given up, as the journal and the event keep it: a code, and for some codes `: ` and a sentence. Both are
/// ours, so they may be logged.
package enum DeadLetterReason: Sendable, Hashable {
  /// It failed for good as often as a write may, the last time with this sentence of ours.
  case failedForGood(String)
  /// The server takes no request as large as the one that holds nothing else.
  /// - Parameters:
  ///   - writes: more than one for an all-or-nothing group.
  ///   - bytes: of the request.
  case tooLarge(table: String, writes: Int, bytes: Int)
  /// The all-or-nothing group has more writes than the server takes at once.
  case tooManyWrites(Int)

  /// What a server takes in one request unless it is told otherwise (`max_batch_size`).
  static let usualMaximum = 500

  private static let failedCode = ErrorCode.permanentTransport.rawValue
  private static let tooLargeCode = "TOO_LARGE"
  private static let tooManyCode = "TOO_MANY_WRITES"

  package var text: String {
    switch self {
    case .failedForGood(let sentence): "\(Self.failedCode): \(sentence)"
    case .tooLarge(let table, 1, let bytes):
      "\(Self.tooLargeCode): the write of \(table) makes a request of \(bytes) bytes, more than the server or what stands "
        + "before it takes (HTTP 413); raise that limit and use outbox retry, or write less"
    case .tooLarge(let table, let writes, let bytes):
      "\(Self.tooLargeCode): the all-or-nothing group of \(writes) writes, the first of \(table), makes a request of "
        + "\(bytes) bytes, more than the server or what stands before it takes (HTTP 413); raise that limit and use outbox "
        + "retry, or use smaller groups"
    case .tooManyWrites(let writes):
      "\(Self.tooManyCode): the all-or-nothing group has \(writes) writes, more than the server takes at once (usually "
        + "\(Self.usualMaximum), its max_batch_size); use smaller groups, or raise that limit and use outbox retry"
    }
  }

  /// Code and sentence of a text that was made here; nil for any other text.
  package static func parts(of text: String) -> (code: String, sentence: String)? {
    for code in [failedCode, tooLargeCode, tooManyCode] where text.hasPrefix(code + ": ") {
      return (code, String(text.dropFirst(code.count + 2)))
    }
    return nil
  }

  /// What the event says of a journal's text: apps compare the code of a failed write (Kizuna wire contract §13.8).
  package static func eventReason(of text: String) -> String {
    text.hasPrefix(failedCode + ": ") ? failedCode : text
  }
}
