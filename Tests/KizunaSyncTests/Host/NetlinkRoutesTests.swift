import Glibc
import HostKit
import Testing

@testable import KizunaSync

/// The kernel's own answers, in a network namespace of one thread's own. Needs the right to make one.
@Suite struct NetlinkRoutesTests {
  /// Runs `body` on a thread whose network is empty: one loopback link, down, and no route.
  static func inEmptyNetwork<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result? {
    await withCheckedContinuation { continuation in
      HostThread.detach(name: "empty-network") {
        guard leaveNetwork() else { return continuation.resume(returning: nil) }
        continuation.resume(returning: body())
      }
    }
  }

  /// `unshare(CLONE_NEWNET)`, which Swift's Glibc module leaves out.
  private static func leaveNetwork() -> Bool {
    guard let symbol = dlsym(nil, "unshare") else { return false }
    // The C declaration is `int unshare(int)`.
    let unshare = unsafeBitCast(symbol, to: (@convention(c) (Int32) -> Int32).self)
    return unshare(0x4000_0000) == 0
  }

  static func canMakeNetworks() async -> Bool { await inEmptyNetwork { true } ?? false }
  static let program: String? = ["/usr/sbin/ip", "/sbin/ip", "/bin/ip"].first { access($0, X_OK) == 0 }

  /// Runs `ip` in the namespace of the calling thread.
  static func ip(_ arguments: String...) {
    guard let program else { return }
    var child = pid_t()
    var list: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for pointer in list { free(pointer) } }
    guard posix_spawn(&child, program, nil, nil, &list, environ) == 0 else { return }
    var status: Int32 = 0
    waitpid(child, &status, 0)
  }

  @Test(.enabled("making a network namespace takes root") { await canMakeNetworks() })
  func withoutARouteNothingIsReachable() async throws {
    let answers = await Self.inEmptyNetwork {
      ["192.0.2.1", "2001:db8::1"].map { NetlinkRoutes.shared.isReachable(IPAddress($0)!) }
    }
    #expect(answers == [false, false])
  }

  @Test(.enabled("making a network namespace takes root, and ip") { await canMakeNetworks() && program != nil })
  func aRouteThatComesIsNoticed() async throws {
    let changes = Locked(0)
    let answers = await Self.inEmptyNetwork { () -> [Bool?] in
      let server = IPAddress("192.0.2.1")!
      let end = NetlinkRoutes.shared.watch { changes.withLock { $0 += 1 } }
      var answers = [NetlinkRoutes.shared.isReachable(server)]
      Self.ip("link", "set", "lo", "up")
      Self.ip("addr", "add", "198.51.100.1/24", "dev", "lo")
      Self.ip("route", "add", "192.0.2.0/24", "dev", "lo")
      answers.append(NetlinkRoutes.shared.isReachable(server))
      Self.ip("route", "replace", "unreachable", "192.0.2.0/24")
      Self.ip("route", "del", "192.0.2.0/24", "dev", "lo")
      answers.append(NetlinkRoutes.shared.isReachable(server))
      let limit = SystemClock.monotonic + .seconds(10)
      while changes.withLock({ $0 }) == 0, SystemClock.monotonic < limit { sched_yield() }
      end?()
      return answers
    }
    #expect(answers == [false, true, false])
    #expect(changes.withLock { $0 } > 0)
  }
}

extension Trait where Self == ConditionTrait {
  static func enabled(_ comment: Comment, _ condition: @escaping @Sendable () async throws -> Bool) -> Self {
    .enabled(comment, sourceLocation: #_sourceLocation, condition)
  }
}
