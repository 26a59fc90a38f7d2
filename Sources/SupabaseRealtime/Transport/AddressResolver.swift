import Glibc
import HostKit

/// Finds the addresses of a host. A look-up blocks and cannot be cut short, so it runs on a thread of its own.
package enum AddressResolver {
  /// One address of a host, as numbers.
  package struct Address: Sendable, Hashable {
    package let text: String
    package let isIPv6: Bool
  }

  /// Whether the host is already an address.
  static func literal(_ host: String) -> Address? {
    var v4 = in_addr()
    if inet_pton(AF_INET, host, &v4) == 1 { return Address(text: host, isIPv6: false) }
    var v6 = in6_addr()
    if inet_pton(AF_INET6, host, &v6) == 1 { return Address(text: host, isIPv6: true) }
    return nil
  }

  /// All addresses of a host, or why it has none.
  package static func addresses(of host: String) -> Result<[Address], RealtimeTransportFailure> {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let result = getaddrinfo(host, nil, &hints, &list)
    defer { if let list { freeaddrinfo(list) } }
    guard result == 0 else {
      let reason = result == EAI_SYSTEM ? String(cString: strerror(errno)) : String(cString: gai_strerror(result))
      return .failure(RealtimeTransportFailure(.unresolved, "The host name \(host) could not be resolved: \(reason)."))
    }
    var addresses: [Address] = []
    var next = list
    while let entry = next {
      var buffer = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      if getnameinfo(
        entry.pointee.ai_addr, entry.pointee.ai_addrlen, &buffer, socklen_t(buffer.count), nil, 0, NI_NUMERICHOST) == 0
      {
        let end = buffer.firstIndex(of: 0) ?? buffer.count
        let text = String(decoding: buffer[..<end].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let address = Address(text: text, isIPv6: entry.pointee.ai_family == AF_INET6)
        if !addresses.contains(address) { addresses.append(address) }
      }
      next = entry.pointee.ai_next
    }
    guard !addresses.isEmpty else {
      return .failure(RealtimeTransportFailure(.unresolved, "The host name \(host) has no address."))
    }
    return .success(addresses)
  }

  /// The system's order of preference, but with the families taking turns, so that one dead family costs one delay.
  static func interleaved(_ addresses: [Address]) -> [Address] {
    guard let first = addresses.first else { return [] }
    var preferred = addresses.filter { $0.isIPv6 == first.isIPv6 }[...]
    var other = addresses.filter { $0.isIPv6 != first.isIPv6 }[...]
    var result: [Address] = []
    while !preferred.isEmpty || !other.isEmpty {
      if let address = preferred.popFirst() { result.append(address) }
      if let address = other.popFirst() { result.append(address) }
    }
    return result
  }
}
