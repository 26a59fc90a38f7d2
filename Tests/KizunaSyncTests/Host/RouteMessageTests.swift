import CLinux
import Glibc
import HostKit
import Testing

@testable import KizunaSync

@Suite struct RouteMessageTests {
  /// A reply as the kernel lays it out.
  func reply(type: UInt16, sequence: UInt32, body: [UInt8]) -> [UInt8] {
    var header = nlmsghdr()
    header.nlmsg_len = UInt32(RouteMessage.headerSize + body.count)
    header.nlmsg_type = type
    header.nlmsg_seq = sequence
    let bytes = withUnsafeBytes(of: header) { Array($0) } + body
    return bytes + Array(repeating: 0, count: (4 - bytes.count % 4) % 4)
  }

  func route(type: Int, flags: UInt32 = 0) -> [UInt8] {
    var route = rtmsg()
    route.rtm_type = UInt8(type)
    route.rtm_flags = flags
    return withUnsafeBytes(of: route) { Array($0) }
  }

  func error(_ number: Int32) -> [UInt8] {
    var error = nlmsgerr()
    error.error = -number
    return withUnsafeBytes(of: error) { Array($0) }
  }

  @Test func theRequestHasTheLengthOfItsFamily() {
    #expect(RouteMessage.request(IPAddress("192.0.2.1")!, sequence: 1).count == 16 + 12 + 4 + 4)
    #expect(RouteMessage.request(IPAddress("2001:db8::1")!, sequence: 1).count == 16 + 12 + 4 + 16)
  }

  @Test func answersAreRead() {
    let newRoute = UInt16(RTM_NEWROUTE)
    func answer(_ bytes: [UInt8]) -> RouteMessage.Answer? { RouteMessage.answer(in: bytes, sequence: 7) }
    #expect(answer(reply(type: newRoute, sequence: 7, body: route(type: RTN_UNICAST))) == .reachable)
    #expect(answer(reply(type: newRoute, sequence: 7, body: route(type: RTN_LOCAL))) == .reachable)
    #expect(answer(reply(type: newRoute, sequence: 7, body: route(type: RTN_UNREACHABLE))) == .unreachable)
    #expect(answer(reply(type: newRoute, sequence: 7, body: route(type: RTN_BLACKHOLE))) == .unreachable)
    #expect(answer(reply(type: newRoute, sequence: 7, body: route(type: RTN_UNICAST, flags: 16))) == .unreachable)
    #expect(answer(reply(type: UInt16(NLMSG_ERROR), sequence: 7, body: error(ENETUNREACH))) == .unreachable)
    #expect(answer(reply(type: UInt16(NLMSG_ERROR), sequence: 7, body: error(EHOSTUNREACH))) == .unreachable)
    #expect(answer(reply(type: UInt16(NLMSG_ERROR), sequence: 7, body: error(EINVAL))) == .unknown)
    #expect(answer(reply(type: newRoute, sequence: 6, body: route(type: RTN_UNICAST))) == nil)
    #expect(answer(reply(type: newRoute, sequence: 7, body: [])) == .unknown)
    #expect(answer([]) == nil)
    #expect(answer([1, 2, 3]) == nil)
  }

  @Test func theAnswerIsFoundAmongOthers() {
    let others = reply(type: UInt16(RTM_NEWROUTE), sequence: 1, body: route(type: RTN_UNREACHABLE) + [1])
    let ours = reply(type: UInt16(RTM_NEWROUTE), sequence: 2, body: route(type: RTN_UNICAST))
    #expect(RouteMessage.answer(in: others + ours, sequence: 2) == .reachable)
  }

  @Test func aMessageOfNoLengthEndsTheReading() {
    #expect(RouteMessage.answer(in: Array(repeating: 0, count: 64), sequence: 0) == nil)
  }

  @Test func theKernelKnowsItsLoopback() {
    #expect(NetlinkRoutes.shared.isReachable(IPAddress("127.0.0.1")!) ?? true)
  }
}
