import Glibc
import HostKit

/// Plain non-blocking connects, started one after another; the first to succeed wins and all are closed.
struct ConnectRace {
  private struct Runner {
    let address: AddressResolver.Address
    let descriptor: Int32
  }

  /// The next address is tried when the one before has not answered for so long, nanoseconds.
  let headStart: UInt64
  /// In the order they are tried.
  let addresses: [AddressResolver.Address]
  let port: UInt16
  /// `CLOCK_MONOTONIC` nanoseconds after which nothing is waited for.
  let deadline: UInt64

  /// Blocks.
  /// - Parameter host: as errors name it.
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
          nextStart = now + headStart
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
