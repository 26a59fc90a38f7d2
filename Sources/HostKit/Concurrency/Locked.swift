import Glibc

/// A value behind a lock, shareable by reference. The lock is not re-entrant and must not be held across callbacks.
public final class Locked<Value>: @unchecked Sendable {  // all access is under the lock
  // A lock of the system's, and not `Mutex`, whose work the thread sanitizer does not see.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private nonisolated(unsafe) var value: Value

  public init(_ value: sending Value) {
    mutex = .allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
    self.value = value
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  public func withLock<Result>(_ body: (inout sending Value) throws -> sending Result) rethrows -> sending Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
