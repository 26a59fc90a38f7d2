import HTTPClient
import HostKit
import KizunaSyncTestSupport
import Testing

@Suite struct ScriptedHTTPTests {
  private func get(_ path: String) -> HTTPRequest { HTTPRequest(method: "GET", url: "http://host:1\(path)?q=1") }

  @Test func answersInOrderThenFromTheHandler() async throws {
    let http = ScriptedHTTP { .json(["path": .string($0.path)]) }
    http.enqueue(.json(1))
    http.enqueue(.json(2, status: 201))
    #expect(try await http.send(get("/a")).body == Array("1".utf8))
    #expect(try await http.send(get("/a")).status == 201)
    #expect(try await http.send(get("/b/c")).body == Array(#"{"path":"/b/c"}"#.utf8))
    #expect(http.calls.map(\.path) == ["/a", "/a", "/b/c"])
  }

  @Test func withoutAnAnswerACallFails() async {
    let http = ScriptedHTTP()
    await #expect(throws: HTTPError.self) { try await http.send(get("/")) }
    #expect(http.calls.count == 1)
  }

  @Test func failsTheNextCallsOfOnePathOnly() async throws {
    let http = ScriptedHTTP { _ in .json(nil) }
    http.faults.failNext(2, path: "/pull")
    http.faults.failNext(with: .permanent, path: "/push")
    #expect(try await http.send(get("/push")).status == 400)
    #expect(try await http.send(get("/push")).status == 200)
    for _ in 0..<2 { await #expect(throws: HTTPError.self) { try await http.send(get("/pull")) } }
    #expect(try await http.send(get("/pull")).status == 200)
    #expect(http.faults.pendingCount == 0)
  }

  @Test func aHeldCallWaitsForItsRelease() async throws {
    let served = Locked(0)
    let http = ScriptedHTTP { _ in
      served.withLock { $0 += 1 }
      return .json(nil)
    }
    let before = http.faults.holdNext(path: "/one")
    let after = http.faults.holdNext(.beforeAnswer, path: "/two")
    async let one = http.send(get("/one"))
    await before.reached()
    #expect(served.withLock { $0 } == 0)
    async let two = http.send(get("/two"))
    await after.reached()
    #expect(served.withLock { $0 } == 1)
    after.release()
    _ = try await two
    before.release()
    _ = try await one
    #expect(served.withLock { $0 } == 2)
  }

  @Test func cancellingAHeldCallEndsIt() async {
    let http = ScriptedHTTP { _ in .json(nil) }
    let held = http.faults.holdNext()
    let task = Task { try await http.send(get("/")) }
    await held.reached()
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    held.release()
  }
}
