/// The look-ups that are under way: one a name, however many attempts wait for it. A resolver that hangs thus holds one
/// thread, and not one more with each attempt that has given up on it. Loop thread only.
struct AddressLookups {
  typealias Addresses = Result<[AddressResolver.Address], RealtimeTransportFailure>
  /// The addresses of a host, or why there are none. Blocks.
  typealias LookUp = @Sendable (_ host: String) -> Addresses

  /// Who waits for the addresses of a host.
  private var waiting: [String: [ObjectIdentifier: (Addresses) -> Void]] = [:]

  /// - Returns: whether the look-up has to be started, because none is under way.
  mutating func wait(for host: String, _ waiter: AnyObject, _ answer: @escaping (Addresses) -> Void) -> Bool {
    let isFirst = waiting[host] == nil
    waiting[host, default: [:]][ObjectIdentifier(waiter)] = answer
    return isFirst
  }

  /// The look-up goes on, and nobody hears of it.
  mutating func giveUp(on host: String, _ waiter: AnyObject) {
    waiting[host]?[ObjectIdentifier(waiter)] = nil
  }

  /// The look-up is over.
  /// - Returns: those who have to be told.
  mutating func finish(_ host: String) -> [(Addresses) -> Void] {
    waiting.removeValue(forKey: host).map { Array($0.values) } ?? []
  }
}
