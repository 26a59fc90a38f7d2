import Glibc
import HostKit

/// Connects to an HTTP proxy and has it open a tunnel.
///
/// libwebsockets 4.1 could ask for one itself, but takes the first piece of the answer that arrives for the whole of it.
final class ProxyTunnel: Sendable {
  private struct State {
    /// While `open` runs; closed under the lock only, so that `cancel` never meets the descriptor of something else.
    var descriptor: Int32?
    var isCancelled = false
  }

  private let request: TunnelRequest
  private let keepAlive: LibwebsocketsTransport.KeepAlive
  private let state = Locked(State())

  init(_ request: TunnelRequest, keepAlive: LibwebsocketsTransport.KeepAlive) {
    self.request = request
    self.keepAlive = keepAlive
  }

  /// Makes `open` return soon. Called on any thread, as often as one likes.
  func cancel() {
    state.withLock { state in
      state.isCancelled = true
      if let descriptor = state.descriptor { Self.hangUp(descriptor) }
    }
  }

  /// Blocks until there is a tunnel or none, or `cancel`, which is how the caller's deadline ends it. Called once.
  ///
  /// - Parameter connected: called when the proxy accepted the connection.
  /// - Returns: the non-blocking socket of the tunnel, at the tunnel's first byte; the caller closes it.
  func open(
    at address: AddressResolver.Address, connected: () -> Void
  ) -> Result<Int32, RealtimeTransportFailure> {
    do throws(RealtimeTransportFailure) {
      let descriptor = try connect(address)
      defer { giveUp() }
      try waitUntilConnected(descriptor)
      connected()
      setOptions(descriptor)
      try send(request.bytes, on: descriptor)
      try readAnswer(from: descriptor)
      guard let tunnel = take() else { throw request.closed }
      return .success(tunnel)
    } catch {
      return .failure(error)
    }
  }

  // MARK: The descriptor's life

  private func connect(_ address: AddressResolver.Address) throws(RealtimeTransportFailure) -> Int32 {
    switch NonblockingConnect.start(address, port: request.proxy.port) {
    case .failure(let error): throw request.unreachable(error.code)
    case .success(let descriptor):
      let isWanted = state.withLock { state -> Bool in
        if state.isCancelled {
          close(descriptor)
        } else {
          state.descriptor = descriptor
        }
        return !state.isCancelled
      }
      guard isWanted else { throw request.closed }
      return descriptor
    }
  }

  private func take() -> Int32? {
    state.withLock { state in
      // A cancelled one has been shut down.
      guard !state.isCancelled else { return nil }
      defer { state.descriptor = nil }
      return state.descriptor
    }
  }

  private func giveUp() {
    state.withLock { state in
      if let descriptor = state.descriptor { close(descriptor) }
      state.descriptor = nil
    }
  }

  // MARK: The conversation

  private func waitUntilConnected(_ descriptor: Int32) throws(RealtimeTransportFailure) {
    Self.wait(for: POLLOUT, on: descriptor)
    let error = NonblockingConnect.pendingError(of: descriptor)
    guard error == 0 else { throw request.unreachable(error) }
  }

  private func send(_ bytes: [UInt8], on descriptor: Int32) throws(RealtimeTransportFailure) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if sent > 0 {
        rest = rest.dropFirst(sent)
      } else {
        try waitAfterError(for: POLLOUT, on: descriptor)
      }
    }
  }

  private func readAnswer(from descriptor: Int32) throws(RealtimeTransportFailure) {
    var answer = ProxyAnswer()
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while true {
      // Only looked at first: what follows the blank line stays in the socket, for TLS or the WebSocket to read.
      let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_PEEK))
      guard count != 0 else { throw request.closed }
      guard count > 0 else {
        try waitAfterError(for: POLLIN, on: descriptor)
        continue
      }
      let (used, verdict) = answer.take(buffer[..<count])
      guard recv(descriptor, &buffer, used, 0) == used else { throw request.closed }
      switch verdict {
      case .incomplete: continue
      case .opened: return
      case .refused(let status, let takesBasic): throw request.refused(status: status, takesBasic: takesBasic)
      case .tooLong: throw request.tooLong
      case .notHTTP: throw request.notHTTP
      }
    }
  }

  /// Returns when the call may be tried again.
  private func waitAfterError(for event: Int32, on descriptor: Int32) throws(RealtimeTransportFailure) {
    switch errno {
    case EINTR: return
    case EAGAIN: Self.wait(for: event, on: descriptor)
    default: throw request.closed
    }
  }

  /// Returns early when the socket has failed or was shut down.
  private static func wait(for event: Int32, on descriptor: Int32) {
    var entry = pollfd(fd: descriptor, events: Int16(event), revents: 0)
    while poll(&entry, 1, -1) < 0 && errno == EINTR {}
  }

  /// Those that libwebsockets gives the sockets it connects itself.
  private func setOptions(_ descriptor: Int32) {
    func set(_ level: Int32, _ option: Int32, _ value: Int32) {
      var value = value
      setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
    let tcp = Int32(IPPROTO_TCP)
    set(SOL_SOCKET, SO_KEEPALIVE, 1)
    set(tcp, TCP_KEEPIDLE, keepAlive.idleSeconds)
    set(tcp, TCP_KEEPINTVL, keepAlive.intervalSeconds)
    set(tcp, TCP_KEEPCNT, keepAlive.probes)
    set(tcp, TCP_USER_TIMEOUT, 1_000 * (keepAlive.idleSeconds + keepAlive.intervalSeconds * keepAlive.probes))
    set(tcp, TCP_NODELAY, 1)
  }
}
