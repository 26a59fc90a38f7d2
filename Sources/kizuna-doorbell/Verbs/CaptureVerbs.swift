import HostKit
import KizunaDoorbell
import KizunaSync

/// `capture off` and `capture on`: for who drops a column of a synced table.
enum CaptureVerbs {
  static let commands = [off, on]

  private static let options = [ConfigurationOption.option.required] + LogOutput.options

  private static let off = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell capture off",
      summary: "Takes the capture triggers away, so that columns can be dropped; all writes are refused meanwhile.",
      options: options)
  ) { arguments in
    let configuration = try ConfigurationOption.load(arguments, log: LogOutput.log(from: arguments), signsIn: false)
    try await ReplicaAccess.with(configuration) { try await $0.turnCaptureOff() }
    StandardStreams.print(
      "Capture is off and writes are refused, until `kizuna-doorbell capture on`; a sync or run turns it on too.")
    return .ok
  }

  private static let on = Command(
    CommandSpecification(
      invocation: "kizuna-doorbell capture on",
      summary: "Puts the capture triggers back, for the tables as they are now.", options: options)
  ) { arguments in
    let configuration = try ConfigurationOption.load(arguments, log: LogOutput.log(from: arguments), signsIn: false)
    // Opening a replica is what makes them.
    try await ReplicaAccess.with(configuration) { _ in }
    StandardStreams.print("Capture is on.")
    return .ok
  }
}
