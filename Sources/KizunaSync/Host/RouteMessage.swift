import CLinux
import Glibc
import HostKit

/// The one question asked of rtnetlink, "how would you reach this address?", and the reading of its answer. Bytes only.
enum RouteMessage {
  enum Answer: Equatable {
    case reachable
    case unreachable
    /// The kernel could not say.
    case unknown
  }

  static let headerSize = MemoryLayout<nlmsghdr>.size

  static func request(_ address: IPAddress, sequence: UInt32) -> [UInt8] {
    let attributeSize = MemoryLayout<rtattr>.size + address.bytes.count
    var header = nlmsghdr()
    header.nlmsg_len = UInt32(headerSize + MemoryLayout<rtmsg>.size + attributeSize)
    header.nlmsg_type = UInt16(RTM_GETROUTE)
    header.nlmsg_flags = UInt16(NLM_F_REQUEST)
    header.nlmsg_seq = sequence
    var route = rtmsg()
    route.rtm_family = UInt8(address.isIPv4 ? AF_INET : AF_INET6)
    route.rtm_dst_len = UInt8(address.bytes.count * 8)
    var attribute = rtattr()
    attribute.rta_len = UInt16(attributeSize)
    attribute.rta_type = UInt16(RTA_DST.rawValue)
    return bytes(of: header) + bytes(of: route) + bytes(of: attribute) + address.bytes
  }

  /// The answer to the request of that sequence number; nil when the datagram holds none.
  static func answer(in datagram: [UInt8], sequence: UInt32) -> Answer? {
    var offset = 0
    while let header = value(nlmsghdr.self, in: datagram, at: offset), header.nlmsg_len >= UInt32(headerSize) {
      let body = offset + headerSize
      if header.nlmsg_seq == sequence {
        switch header.nlmsg_type {
        case UInt16(RTM_NEWROUTE):
          return value(rtmsg.self, in: datagram, at: body).map(answer) ?? .unknown
        case UInt16(NLMSG_ERROR):
          return value(nlmsgerr.self, in: datagram, at: body).map { answer(error: -$0.error) } ?? .unknown
        default: break
        }
      }
      // Messages are padded to four bytes.
      offset += (Int(header.nlmsg_len) + 3) & ~3
    }
    return nil
  }

  private static func answer(_ route: rtmsg) -> Answer {
    let dead = UInt32(RTNH_F_DEAD) | UInt32(RTNH_F_LINKDOWN)
    if route.rtm_flags & dead != 0 { return .unreachable }
    return switch Int(route.rtm_type) {
    case RTN_UNREACHABLE, RTN_BLACKHOLE, RTN_PROHIBIT: .unreachable
    default: .reachable
    }
  }

  private static func answer(error: Int32) -> Answer {
    switch error {
    case ENETUNREACH, EHOSTUNREACH, ENETDOWN, ENODEV, EACCES: .unreachable
    default: .unknown
    }
  }

  private static func bytes<Value>(of value: Value) -> [UInt8] {
    withUnsafeBytes(of: value) { Array($0) }
  }

  private static func value<Value>(_ type: Value.Type, in datagram: [UInt8], at offset: Int) -> Value? {
    guard offset >= 0, offset + MemoryLayout<Value>.size <= datagram.count else { return nil }
    return datagram.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Value.self) }
  }
}
