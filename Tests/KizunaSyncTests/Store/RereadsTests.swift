import Testing

@testable import KizunaSync

@Suite struct RereadsTests {
  @Test func theReasonThatKeepsMostHolds() {
    var rereads = Rereads()
    rereads.ask("a", keep: .nothing, fresh: ["x"])
    rereads.ask("a", keep: .changes)
    rereads.ask("a", keep: .rows, fresh: ["y"])
    #expect(rereads["a"] == Rereads.Reread(keep: .changes, fresh: ["x", "y"], isQueueDue: true))
    rereads.queueWasCompared("a")
    #expect(rereads["a"] == Rereads.Reread(keep: .changes, fresh: ["x", "y"]))
    rereads.startOver("a")
    #expect(rereads["a"] == Rereads.Reread(keep: .nothing))
    rereads.finish("a")
    #expect(rereads.isEmpty)
  }

  @Test func aTransferOfEverythingLeavesWhatIsToBeCompared() {
    var rereads = Rereads()
    rereads.ask("a", keep: .nothing)
    rereads.ask("b", keep: .rows)
    rereads.ask("c", keep: .changes, fresh: ["x"])
    rereads.everythingWasRead()
    #expect(rereads["a"] == nil)
    #expect(rereads["b"] == Rereads.Reread(keep: .rows))
    #expect(rereads["c"] == Rereads.Reread(keep: .rows, fresh: ["x"]))
  }

  @Test func theTextSaysTheSame() {
    var rereads = Rereads()
    #expect(rereads.text == nil)
    rereads.ask("a", keep: .changes, fresh: ["x", "\"y\""])
    rereads.ask("b", keep: .nothing)
    #expect(Rereads(rereads.text) == rereads)
  }

  @Test(arguments: [nil, "", "[]", "{\"a\":1}", "{\"a\":{\"keep\":9}}", "no JSON"])
  func otherTextSaysNothing(text: String?) {
    #expect(Rereads(text).isEmpty)
  }
}
