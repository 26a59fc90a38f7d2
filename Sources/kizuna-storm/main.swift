import HostKit

let program = CommandProgram(Command(StormCommand.specification, run: StormCommand.run))
await program.main()
