import KizunaSync
import Testing

/// Attachments are not moved; the calls are there, so that code compiles, and say so instead of doing nothing.
@Suite struct AttachmentCallsTests {
  private static let calls: [(name: String, call: @Sendable (KizunaSyncClient) async throws -> Void)] = [
    ("fromFile", { _ = try await $0.fromFile(table: "notes", column: "photo", pk: "1", sourcePath: "/none") }),
    ("resolveDownload", { _ = try await $0.resolveDownload("r") }),
    ("getStatus", { _ = try await $0.getStatus("r") }),
    ("watch", { _ = try await $0.watch("r") { _ in } }),
    ("attachmentRetry", { try await $0.attachmentRetry("r") }),
    ("attachmentCancel", { try await $0.attachmentCancel("r") }),
    ("attachmentRemove", { try await $0.attachmentRemove("r") }),
    ("vacuum", { try await $0.vacuum() }),
  ]

  @Test(arguments: calls.map(\.name)) func eachIsRefusedWithASentence(name: String) async throws {
    let client = KizunaSyncClient()
    let call = try #require(Self.calls.first { $0.name == name }).call
    let error = await #expect(throws: KizunaSyncError.self) { try await call(client) }
    #expect(error?.code == "LOCAL_UNSUPPORTED")
    #expect(error?.isRetryable == false)
    #expect(error?.message.contains("attachments are not supported") == true)
    await client.dispose()
  }
}
