import HostKit
import SupabaseRealtime

/// Asks the system for the addresses of a host, and waits so long and no longer.
enum NameLookup {
  private static let deadline: UInt64 = .seconds(10)

  /// - Returns: nil when there is no answer in time.
  static func addresses(of host: String, clock: any HostClock) async -> Result<[String], NameLookupFailure>? {
    let (answers, continuation) = AsyncStream.makeStream(of: Result<[String], NameLookupFailure>?.self)
    // It cannot be cut short; the thread ends by itself some time.
    HostThread.detach(name: "kizuna-lookup") {
      let found = AddressResolver.addresses(of: host)
      continuation.yield(found.map { $0.map(\.text) }.mapError { NameLookupFailure(message: $0.message) })
    }
    let timer = clock.schedule(after: deadline) { continuation.yield(nil) }
    defer { timer.cancel() }
    for await answer in answers { return answer }
    return nil
  }
}
