import CLinux
import Glibc
import HostKit

/// The kernel's routing tables over rtnetlink. Watching costs one thread that sleeps in `poll`.
final class NetlinkRoutes: RouteSource {
  static let shared = NetlinkRoutes()

  func isReachable(_ address: IPAddress) -> Bool? {
    // A link-local address says nothing without its interface.
    if !address.isIPv4, address.bytes[0] == 0xFE { return nil }
    guard let socket = Self.open(groups: 0) else { return nil }
    defer { close(socket) }
    // The answer is made while the request is sent; the limit is only against a kernel that does otherwise.
    var limit = timeval(tv_sec: 0, tv_usec: 200_000)
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let request = RouteMessage.request(address, sequence: 1)
    guard send(socket, request, request.count, 0) == request.count else { return nil }
    while let datagram = Self.receive(from: socket) {
      switch RouteMessage.answer(in: datagram, sequence: 1) {
      case .reachable: return true
      case .unreachable: return false
      case .unknown: return nil
      case nil: continue
      }
    }
    return nil
  }

  func watch(_ onChange: @escaping @Sendable () -> Void) -> (@Sendable () -> Void)? {
    let groups =
      RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE
    guard let socket = Self.open(groups: UInt32(groups)) else { return nil }
    guard let end = StopDescriptor() else {
      close(socket)
      return nil
    }
    HostThread.detach(name: "kizuna-path") {
      while end.waitFor(socket) {
        while Self.receive(from: socket, flags: Int32(MSG_DONTWAIT)) != nil {}
        onChange()
      }
      close(socket)
    }
    return { end.stop() }
  }

  private static func open(groups: UInt32) -> Int32? {
    let descriptor = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue), NETLINK_ROUTE)
    guard descriptor >= 0 else { return nil }
    var address = sockaddr_nl()
    address.nl_family = sa_family_t(AF_NETLINK)
    address.nl_groups = groups
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_nl>.size))
      }
    }
    guard bound == 0 else {
      close(descriptor)
      return nil
    }
    return descriptor
  }

  /// One datagram, or an empty one when the kernel dropped some; nil when there is none.
  private static func receive(from socket: Int32, flags: Int32 = 0) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 8192)
    while true {
      let count = recv(socket, &buffer, buffer.count, flags)
      if count >= 0 { return Array(buffer[..<count]) }
      switch errno {
      case EINTR: continue
      case ENOBUFS: return []
      default: return nil
      }
    }
  }
}
