import Glibc
import HostKit
import KizunaSyncTestSupport
import LocalStack
import Testing

/// F23: what an event carries decides nothing; it is only a reason to look. Empty, wrong and oversized ones leave the
/// replica as it is and cost no memory.
@Suite struct OddEventsTests {
  private static let megabyte = JSONValue.string(String(repeating: "x", count: 1 << 20))

  private static let payloads: [[String: JSONValue]] = [
    [:], ["t": nil], ["t": 5], ["t": "no such table"], ["t": ["todos"]],
    ["t": "todos", "record": ["id": "never", "title": "never"], "type": "DELETE", "old_record": ["id": "there"]],
    ["t": megabyte], ["t": "todos", "record": megabyte],
  ]

  @Test(.timeLimit(.minutes(5)), arguments: FaultyHost.Kind.allCases)
  func theyChangeNothing(kind: FaultyHost.Kind) async throws {
    try await FaultyHost.with(kind) { host in
      try await host.writeThere("there")
      try await host.converge(["there"])
      await host.expectJoinedOnce("at first")
      func send(_ rounds: Int) async {
        for _ in 0..<rounds {
          for payload in Self.payloads {
            await host.stack.send(topic: "kizunasync:todos", event: "changed", payload: payload)
          }
          await host.stack.send(topic: "kizunasync:todos", event: "nonsense", payload: ["t": "todos"])
          await host.stack.sendBinary(topic: "kizunasync:todos", event: "changed", bytes: [0, 255, 7])
        }
      }
      // What the first ones allocate once does not count.
      await send(3)
      try await host.writeThere("between")
      try await host.converge(["there", "between"])
      var before: ProcessResources?
      if let process = host.process { before = try await ProcessResources.atRest(process.pid) }
      await send(20)
      try await host.writeThere("after")
      try await host.converge(["there", "between", "after"])
      if let process = host.process, let before {
        let after = try await ProcessResources.atRest(process.pid)
        #expect(after.residentBytes < before.residentBytes + (16 << 20), "from \(before) to \(after)")
      }
      #expect(
        try PlainSQL.run(host.database, "SELECT title FROM todos ORDER BY title") == ["after", "between", "there"])
    }
  }
}
