import HostKit

await CommandProgram(Command(SoakCommand.specification, run: SoakCommand.run)).main()
