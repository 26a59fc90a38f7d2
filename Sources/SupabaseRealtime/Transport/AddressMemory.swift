/// Remembers for a while which address of a host answered, so that a reconnect neither looks up nor races again.
struct AddressMemory {
  private var entries: [String: (address: AddressResolver.Address, until: UInt64)] = [:]

  /// - Parameter origin: host and port.
  mutating func address(for origin: String, now: UInt64) -> AddressResolver.Address? {
    guard let entry = entries[origin] else { return nil }
    if entry.until > now { return entry.address }
    entries[origin] = nil
    return nil
  }

  mutating func remember(_ address: AddressResolver.Address, for origin: String, until: UInt64) {
    entries[origin] = (address, until)
  }

  mutating func forget(_ origin: String) {
    entries[origin] = nil
  }
}
