import HostKit
import KizunaSync
import KizunaSyncTestSupport

/// A client on a server of the test's own, without a network or a file.
struct OpenClient {
  static let user = "00000000-0000-4000-8000-a10000000001"
  static let other = "00000000-0000-4000-8000-a10000000002"

  let client: KizunaSyncClient
  let server: SyncServer
  let transport: SyncServerTransport

  /// Tables: `notes` of one owner, `todos` of one owner with `user_id`, `facts` for everybody.
  init(
    tables: [String: KizunaSyncTableConfig] = [
      "notes": .init(bucket: .byOwner("owner_id")), "todos": .init(bucket: .byOwner("user_id")), "facts": .init(),
    ], signedIn: Bool = true
  ) async throws {
    server = SyncServer(
      configuration: SyncServerConfiguration(tables: [
        "notes": SyncTable(bucketColumn: "owner_id"), "todos": SyncTable(bucketColumn: "user_id"),
        "facts": SyncTable(),
      ]))
    transport = SyncServerTransport(server)
    client = KizunaSyncClient(http: transport)
    try await client.create(
      KizunaSyncClientConfig(
        tables: tables, remote: .init(url: "http://localhost", publishableKey: "key")))
    if signedIn { try await client.setAccessToken(TestToken.user(Self.user)) }
  }
}
