import Glibc

@testable import HostKit

/// A pipe that nobody reads until somebody asks for its lines.
final class TestPipe: Sendable {
  let reader: Int32
  let writer: Int32

  init() {
    var ends: [Int32] = [-1, -1]
    pipe(&ends)
    (reader, writer) = (ends[0], ends[1])
  }

  deinit {
    close(reader)
    close(writer)
  }

  /// Reads up to the first line that `isLast`.
  func lines(until isLast: (String) -> Bool) -> [String] {
    var lines: [String] = []
    var rest: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(reader, &chunk, chunk.count)
      guard count > 0 else { return lines }
      rest += chunk[0..<count]
      var pieces = rest.split(separator: 0x0A, omittingEmptySubsequences: false)
      rest = Array(pieces.removeLast())
      for piece in pieces {
        lines.append(String(decoding: piece, as: UTF8.self))
        if isLast(lines[lines.count - 1]) { return lines }
      }
    }
  }
}

extension OutputQueue {
  /// Returns when everything is written or lost.
  func idle() async {
    await withCheckedContinuation { continuation in whenIdle { continuation.resume() } }
  }
}
