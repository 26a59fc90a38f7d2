import HostKit
import KizunaSync
import KizunaSyncTestSupport
import Testing

@testable import KizunaDoorbell

/// Many rings, one after the other.
@Suite(.timeLimit(.minutes(5))) struct RingFloodScenarios {
  private static let todos = "kizunasync:todos"

  private func rows(_ setting: ScriptedGateway) async throws -> Int {
    (try await setting.gateway.client.from("todos").select().execute() as? [[String: Any]])?.count ?? 0
  }

  private func write(_ id: String, _ setting: ScriptedGateway) async throws {
    try await setting.project.server.upsert("todos", id, ["owner_id": .string(ScriptedProject.user)])
  }

  /// Rings that come one after the other are answered at once, however many: time stands still meanwhile.
  @Test func ringsOneByOneAreAllAnsweredAtOnce() async throws {
    try await ScriptedGateway.with { setting in
      await setting.advance(5)
      let now = setting.clock.now
      for number in 1...40 {
        let before = setting.project.pulls
        try await write("row-\(number)", setting)
        setting.transport.broadcast(Self.todos)
        await setting.settle { setting.project.pulls > before }
        #expect(try await rows(setting) == number)
      }
      #expect(setting.clock.now == now)
    }
  }
}
