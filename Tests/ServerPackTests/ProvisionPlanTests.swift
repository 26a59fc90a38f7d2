import HostKit
import Testing

@testable import ServerPack

@Suite struct ProvisionPlanTests {
  @Test func quotesWhateverAnameHolds() {
    #expect(ProvisionPlan.literal("a'b") == "'a''b'")
    #expect(ProvisionPlan.literal("a\\'b") == " E'a\\\\''b'")
    #expect(ProvisionPlan.literal("") == "''")
  }

  @Test func isOneTransactionWithThePackAndTheTables() {
    let plan = ProvisionPlan(tables: [
      "b": TableDeclaration(bucket: .column("team", value: "x"), key: ["id", "n"], conflictMode: .hlc),
      "a": TableDeclaration(syncMode: .pullOnly),
    ])
    #expect(plan.script.hasPrefix("begin isolation level read committed;\n"))
    #expect(plan.script.hasSuffix("commit;\n"))
    #expect(plan.script.contains(ServerPack.migration))
    #expect(
      plan.script.contains(
        #"kizunasync.provision('[{"bucket":null,"columns":["id"],"conflict_mode":"arrival","key":["id"],"sync_mode":"pull-only","table":"a"},{"bucket":"team","columns":["id","n","team"],"conflict_mode":"hlc","key":["id","n"],"sync_mode":"read-write","table":"b"}]'::jsonb)"#
      ))
    // The bucket's value is the client's, and none of the server's business.
    #expect(!plan.script.contains("\"x\""))
  }

  @Test func theSQLNeedsNoPsql() {
    for text in [ServerPack.migration, ServerPack.deprovision] {
      #expect(!text.split(separator: "\n").contains { $0.hasPrefix("\\") })
      #expect(!text.contains("\r") && text.hasSuffix("\n"))
    }
  }
}
