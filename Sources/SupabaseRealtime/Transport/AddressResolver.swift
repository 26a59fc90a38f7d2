import Glibc
import HostKit

/// Finds the address to connect to. Everything here blocks and runs on a thread of its own.
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

  /// Looks the name up and returns the address that accepts a connection first.
  ///
  /// - Parameter deadline: `CLOCK_MONOTONIC` nanoseconds after which waiting for a connection ends. The lookup itself
  ///   cannot be cut short; the caller stops waiting for it instead.
  static func reachableAddress(
    host: String, port: UInt16, deadline: UInt64
  ) -> Result<Address, RealtimeTransportFailure> {
    switch addresses(of: host) {
    case .failure(let failure): .failure(failure)
    case .success(let addresses) where addresses.count == 1: .success(addresses[0])
    case .success(let addresses):
      ConnectRace(addresses: interleaved(addresses), port: port, deadline: deadline).run(host: host)
    }
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

/// Plain non-blocking connects, started one after another; the first to succeed wins and all are closed.
private struct ConnectRace {
  /// The next address is tried when the one before has not answered for so long.
  private static let headStart: UInt64 = .milliseconds(250)

  private struct Runner {
    let address: AddressResolver.Address
    let descriptor: Int32
  }

  let addresses: [AddressResolver.Address]
  let port: UInt16
  let deadline: UInt64

  func run(host: String) -> Result<AddressResolver.Address, RealtimeTransportFailure> {
    var waiting = addresses[...]
    var runners: [Runner] = []
    defer { for runner in runners { close(runner.descriptor) } }
    var lastError: Int32 = 0
    var nextStart = SystemClock.monotonic
    while true {
      let now = SystemClock.monotonic
      if now >= deadline { return .failure(failure(host, ETIMEDOUT)) }
      if let address = waiting.first, now >= nextStart || runners.isEmpty {
        waiting = waiting.dropFirst()
        switch NonblockingConnect.start(address, port: port) {
        case .success(let descriptor):
          runners.append(Runner(address: address, descriptor: descriptor))
          nextStart = now + Self.headStart
        case .failure(let error): lastError = error.code
        }
        continue
      }
      if runners.isEmpty { return .failure(failure(host, lastError)) }
      let until = waiting.isEmpty ? deadline : min(deadline, nextStart)
      var polls = runners.map { pollfd(fd: $0.descriptor, events: Int16(POLLOUT), revents: 0) }
      let milliseconds = Int32(clamping: (until - min(until, now)) / 1_000_000 + 1)
      guard poll(&polls, nfds_t(polls.count), milliseconds) > 0 else { continue }
      for (index, entry) in polls.enumerated().reversed() where entry.revents != 0 {
        let error = NonblockingConnect.pendingError(of: entry.fd)
        if error == 0 { return .success(runners[index].address) }
        lastError = error
        close(entry.fd)
        runners.remove(at: index)
      }
    }
  }

  private func failure(_ host: String, _ code: Int32) -> RealtimeTransportFailure {
    let reason = String(cString: strerror(code))
    return RealtimeTransportFailure(
      code == ETIMEDOUT ? .timeout : .unreachable, "No connection to \(host) port \(port): \(reason).")
  }
}
