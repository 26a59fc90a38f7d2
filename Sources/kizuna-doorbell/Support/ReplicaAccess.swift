import HostKit
import KizunaDoorbell
import KizunaSync

/// Work on a replica that needs the database for itself and no server.
enum ReplicaAccess {
  /// Opens the replica of the configuration, and closes it when `body` is done.
  /// - Throws: `CommandFailure` with the code for a held database while a `run` or another command has it.
  static func with(
    _ configuration: GatewayConfiguration, _ body: (KizunaSyncClient) async throws -> Void
  ) async throws {
    // A database that is not there, or none of ours, is not made now.
    _ = try KizunaSyncReplicaStatus.read(databasePath: configuration.database)
    let client = KizunaSyncClient()
    let outcome: Result<Void, any Error>
    do {
      try await client.create(configuration.clientConfiguration)
      outcome = .success(try await body(client))
    } catch let error as KizunaSyncError where KizunaSyncReplicaStatus.isHeld(error) {
      outcome = .failure(CommandFailure(.locked, error.message))
    } catch {
      outcome = .failure(error)
    }
    await client.dispose()
    try outcome.get()
  }
}
