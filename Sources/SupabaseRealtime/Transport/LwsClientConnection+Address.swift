import HostKit

/// Where to connect to: an address that is given, remembered, or looked up and raced for. Loop thread only.
extension LwsClientConnection {
  func find(_ target: ConnectionTarget) {
    if let address = AddressResolver.literal(target.peerHost) { return reach(target, at: address) }
    if let address = Self.shared.addresses.address(for: target.peerLabel, now: environment.clock.now) {
      return reach(target, at: address)
    }
    let until = SystemClock.monotonic + request.handshakeTimeout
    let host = target.peerHost
    let isFirst = Self.shared.lookups.wait(for: host, self) { result in
      guard !self.isFinished else { return }
      switch result {
      case .success(let addresses): self.race(addresses, target, until: until)
      case .failure(let failure): self.unreachable(target, failure)
      }
    }
    guard isFirst else { return }
    HostThread.detach(name: "kizuna-resolve") { [environment] in
      let result = environment.lookUp(host)
      environment.loop.run { for answer in Self.shared.lookups.finish(host) { answer(result) } }
    }
  }

  private func race(_ addresses: [AddressResolver.Address], _ target: ConnectionTarget, until: UInt64) {
    if addresses.count == 1 { return reach(target, at: addresses[0]) }
    let race = ConnectRace(
      headStart: environment.limits.addressHeadStart, addresses: AddressResolver.interleaved(addresses),
      port: target.peerPort, deadline: until)
    let loop = environment.loop
    HostThread.detach(name: "kizuna-race") {
      let result = race.run(host: target.peerHost)
      loop.run {
        // The attempt may have ended meanwhile.
        guard !self.isFinished, self.record.phase == .resolving else { return }
        switch result {
        case .success(let address): self.reach(target, at: address)
        case .failure(let failure): self.unreachable(target, failure)
        }
      }
    }
  }

  private func unreachable(_ target: ConnectionTarget, _ failure: RealtimeTransportFailure) {
    record.failure = target.ofPeer(failure)
    finish()
  }

  /// The address did not lead to a connection; the next attempt looks for another.
  func forgetAddress() {
    if let target { Self.shared.addresses.forget(target.peerLabel) }
  }
}
