import HostKit

/// `bench writes`: what capture costs an insert, and what the client adds to a push.
enum WritesBenchVerb {
  static let command = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell bench writes",
      summary: "Measures local inserts with and without capture, and how much of a push is the client's.",
      options: [
        .value("rows", "N", "how many rows are inserted in bulk, and a hundredth of it one by one; default 100000"),
        .value("queued", "N", "how many queued writes are pushed; default 10000"),
        .value("repeats", "N", "how often, in turns; medians are printed; default 3"),
        .flag("json", "print one JSON object"),
      ] + LogOutput.options), run: run)

  private static func run(_ arguments: Arguments) async throws -> ExitCode {
    let rows = try arguments.integer("rows", in: 1...10_000_000) ?? 100_000
    let queued = try arguments.integer("queued", in: 1...1_000_000) ?? 10_000
    let repeats = try arguments.integer("repeats", in: 1...100) ?? 3
    let log = BenchVerb.log(arguments)
    let report = try await BenchFolder.with { folder in
      try await StackChild.with { stack in
        try await WritesBench(stack, folder: folder, log: log).run(rows: rows, queued: queued, repeats: repeats)
      }
    }
    StandardStreams.print(arguments.flag("json") ? JSONWriter.text(report.json) : report.text)
    return .ok
  }
}
