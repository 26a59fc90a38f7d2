#if Postgres
  import HostKit
  import LocalStack

  /// When the last notifications arrived, for measurements on this machine: `GET /_localstack/commits`.
  ///
  /// A notification follows its commit; the exact time of a commit is known to the session that committed only. What was
  /// committed by way of this server has it in the answer's header `x-localstack-committed-ns`.
  final class NotificationTimes: Sendable {
    private struct State {
      var times: [UInt64] = []
      var next: Int64 = 1
    }

    private static let limit = 10_000
    private let state = Locked(State())

    /// - Parameter at: `CLOCK_MONOTONIC`.
    func add(_ count: Int, at: UInt64) {
      state.withLock { state in
        state.times.append(contentsOf: repeatElement(at, count: count))
        state.next += Int64(count)
        if state.times.count > 2 * Self.limit { state.times.removeFirst(state.times.count - Self.limit) }
      }
    }

    /// The last of them, numbered from 1 since the start; those after a number where one is given.
    func response(to request: StackRequest) -> StackResponse {
      let after = request.parameter("after").flatMap { Int64($0) } ?? 0
      let state = state.withLock { $0 }
      let first = state.next - Int64(state.times.count)
      let list = state.times.enumerated().compactMap { index, at -> JSONValue? in
        let seq = first + Int64(index)
        return seq > after ? ["seq": .string(String(seq)), "monotonic_ns": .int(Int64(at))] : nil
      }
      return .json(["commits": .array(list)])
    }
  }
#endif
