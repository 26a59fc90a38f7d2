/// The closures the app gave a scheduler. They are called one at a time by the attempt in flight.
struct SchedulerHooks: @unchecked Sendable {  // the app hands them over for use on any thread
  var refreshSession: () async -> Bool
  var sync: () async throws -> Void
  var onError: ((any Error) -> Void)?
  var needsReset: (@Sendable () async -> Bool)?
}

/// A closure of the app on its way into a lock.
struct HandedClosure<Value>: @unchecked Sendable {  // handed over as in `SchedulerHooks`
  let value: Value
}
