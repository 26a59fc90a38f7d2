import KizunaSync
import KizunaSyncTestSupport
import Testing

/// The example of the test support's documentation, as it stands there.
@Test func theDocumentedLostAnswerExampleWorks() async throws {
  let server = SyncServer(
    configuration: SyncServerConfiguration(tables: ["todos": SyncTable(bucketColumn: "owner_id")]))
  let transport = SyncServerTransport(server)
  let client = KizunaSyncClient(http: transport)
  try await client.create(
    KizunaSyncClientConfig(
      tables: ["todos": KizunaSyncTableConfig(bucket: .byOwner("owner_id"))],
      remote: KizunaSyncRemoteConfig(url: "https://example.com", publishableKey: "key")))
  try await client.setAccessToken(TestToken.user("ada"))
  try await client.from("todos").insert(["title": "once"])

  transport.faults.dropNextAnswers(path: "push")
  await #expect(throws: KizunaSyncError.self) { try await client.sync() }
  #expect(try await client.outboxDepth() == 1)
  try await client.sync()
  #expect(try await client.outboxDepth() == 0)
  let dump = await server.dump()
  #expect(dump.components(separatedBy: "once").count == 2, "one row:\n\(dump)")

  let pushes = transport.bodies(of: "push")
  #expect(pushes.count == 2)
  #expect(pushes[0]["batch"] == pushes[1]["batch"])
  await client.dispose()
}
