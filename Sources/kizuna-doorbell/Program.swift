import HostKit

@main
enum Program {
  static func main() async {
    // First of all, while there is one thread.
    GlobalPool.install()
    ProcessSignals.shared.start()
    let program = CommandProgram(
      name: "kizuna-doorbell", summary: "Keeps a local SQLite replica of Supabase tables, near real time.",
      verbs: [RunVerb.command, SyncVerb.command, StatusVerb.command] + OutboxVerbs.commands
        + CaptureVerbs.commands + [ResetVerb.command, ListenVerb.command, DoctorVerb.command, ProvisionVerb.command]
        + [BenchVerb.command, IngestBenchVerb.command, WritesBenchVerb.command],
      explain: Failures.explain)
    await program.main()
  }
}
