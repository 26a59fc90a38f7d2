import CLibwebsockets
import CLinux
import Glibc
import HostKit

/// The way through a proxy: the tunnel is opened first, then libwebsockets speaks through it as if it had connected to
/// the server itself. Loop thread only.
extension LwsClientConnection {
  func openTunnel(_ target: ConnectionTarget, through proxy: ProxyServer, at address: AddressResolver.Address) {
    let tunnel = ProxyTunnel(
      TunnelRequest(origin: target.url.origin, proxy: proxy), keepAlive: environment.limits.keepAlive)
    self.tunnel = tunnel
    let loop = environment.loop
    HostThread.detach(name: "kizuna-tunnel") {
      let result = tunnel.open(at: address) {
        loop.run { if self.record.phase == .connecting { self.record.phase = .tunnelling } }
      }
      loop.run { self.tunnelled(target, result) }
    }
  }

  private func tunnelled(_ target: ConnectionTarget, _ result: Result<Int32, RealtimeTransportFailure>) {
    tunnel = nil
    switch result {
    case .success(let descriptor):
      tunnelDescriptor = descriptor
      // The attempt may have ended meanwhile.
      if isUndecided, !StandInListener.whileListening({ open(target, at: $0) }) { fail(Self.notHandedOver) }
      closeTunnelDescriptor()
    case .failure(let failure):
      forgetAddress()
      fail(failure)
    }
  }

  /// libwebsockets has connected to the stand-in and sent nothing yet: its socket becomes the tunnel. It finds its
  /// sockets by their numbers and waits for them with `poll`, so that it need not know.
  func enterTunnel(_ wsi: OpaquePointer) {
    let descriptor = lws_get_socket_fd(wsi)
    if let tunnelDescriptor, kd_replace_descriptor(descriptor, tunnelDescriptor) >= 0 { return closeTunnelDescriptor() }
    ProxyTunnel.hangUp(descriptor)
    fail(Self.notHandedOver)
  }

  private static var notHandedOver: RealtimeTransportFailure {
    RealtimeTransportFailure(.other, "The tunnel of the proxy could not be handed to libwebsockets.")
  }

  private func closeTunnelDescriptor() {
    if let tunnelDescriptor { Glibc.close(tunnelDescriptor) }
    tunnelDescriptor = nil
  }
}

extension ProxyTunnel {
  /// Wakes whoever reads or writes there, and tells the peer. (Here, because the constant is only seen beside
  /// CLibwebsockets when everything is optimised together.)
  static func hangUp(_ descriptor: Int32) {
    shutdown(descriptor, Int32(SHUT_RDWR))
  }
}
