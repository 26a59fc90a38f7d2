import HostKit

let signals = StopSignal()
let program = CommandProgram(
  Command(LocalStackCommand.specification) { [signals] arguments in
    try await LocalStackCommand.run(arguments, signals)
  }, explain: LocalStackCommand.explain)
await program.main()
