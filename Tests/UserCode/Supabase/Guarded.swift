import Synchronization

final class Guarded<Value>: Sendable {
  private let mutex: Mutex<Value>
  init(_ value: sending Value) { mutex = Mutex(value) }
  func withLock<Result>(_ body: (inout sending Value) -> sending Result) -> sending Result { mutex.withLock(body) }
}
