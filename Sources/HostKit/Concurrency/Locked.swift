import Synchronization

/// A value behind a lock, shareable by reference. The lock is not re-entrant and must not be held across callbacks.
public final class Locked<Value>: Sendable {
  private let mutex: Mutex<Value>

  public init(_ value: sending Value) {
    mutex = Mutex(value)
  }

  public func withLock<Result>(_ body: (inout sending Value) throws -> sending Result) rethrows -> sending Result {
    try mutex.withLock(body)
  }
}
