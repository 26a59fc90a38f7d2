/// Lets one run of requests through at a time, first come first served. Part of an actor's state.
struct RequestGate {
  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  /// - Returns: true when the gate was free and is the caller's now; else it must `wait`.
  mutating func enter() -> Bool {
    if isTaken { return false }
    isTaken = true
    return true
  }

  mutating func wait(_ continuation: CheckedContinuation<Void, Never>) {
    waiting.append(continuation)
  }

  /// Hands the gate to the next in line.
  mutating func leave() {
    if waiting.isEmpty {
      isTaken = false
    } else {
      waiting.removeFirst().resume()
    }
  }
}
