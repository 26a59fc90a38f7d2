import HostKit

/// A value that tests wait on: whoever changes it wakes those whose condition holds.
final class Observed<Value: Sendable>: Sendable {
  private struct Waiter {
    let condition: @Sendable (Value) -> Bool
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var value: Value
    var waiters: [UInt64: Waiter] = [:]
    var lastID: UInt64 = 0
  }

  private let state: Locked<State>

  init(_ value: Value) {
    state = Locked(State(value: value))
  }

  var value: Value { state.withLock { $0.value } }

  func change(_ change: @Sendable (inout Value) -> Void) {
    let woken = state.withLock { state -> [CheckedContinuation<Void, Never>] in
      change(&state.value)
      let settled = state.waiters.filter { $0.value.condition(state.value) }
      for id in settled.keys { state.waiters[id] = nil }
      return settled.values.map(\.continuation)
    }
    for continuation in woken { continuation.resume() }
  }

  /// Returns also when the task is cancelled.
  func wait(until condition: @escaping @Sendable (Value) -> Bool) async {
    let id = state.withLock { state -> UInt64 in
      state.lastID += 1
      return state.lastID
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state -> Bool in
          if Task.isCancelled || condition(state.value) { return true }
          state.waiters[id] = Waiter(condition: condition, continuation: continuation)
          return false
        }
        if isOver { continuation.resume() }
        if Task.isCancelled { cancel(id) }
      }
    } onCancel: {
      cancel(id)
    }
  }

  private func cancel(_ id: UInt64) {
    state.withLock { $0.waiters.removeValue(forKey: id)?.continuation }?.resume()
  }
}
