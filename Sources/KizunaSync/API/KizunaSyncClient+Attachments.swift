import HostKit

/// Attachments are not moved by this implementation: their columns sync as text, and these calls say so.
extension KizunaSyncClient {
  private func refuse() -> KizunaSyncError {
    KizunaSyncError(.localUnsupported, "attachments are not supported by this client; sync their columns as text")
  }

  /// Always refused with `LOCAL_UNSUPPORTED`.
  public func fromFile(
    table: String, column: String, pk: String, sourcePath: String, mediaType: String? = nil
  ) async throws -> KizunaSyncFromFileResult {
    throw refuse()
  }

  /// Always refused with `LOCAL_UNSUPPORTED`.
  public func resolveDownload(_ reference: String) async throws -> String? { throw refuse() }

  /// Always refused with `LOCAL_UNSUPPORTED`.
  public func getStatus(_ reference: String) async throws -> KizunaSyncAttachmentStatus? { throw refuse() }

  /// Always refused with `LOCAL_UNSUPPORTED`.
  public func watch(
    _ reference: String, onStatus: @escaping @Sendable (KizunaSyncAttachmentStatus) -> Void
  ) async throws -> @Sendable () -> Void {
    throw refuse()
  }

  /// Always refused with `LOCAL_UNSUPPORTED`.
  @discardableResult
  public func attachmentRetry(_ reference: String) async throws -> Bool { throw refuse() }

  /// Always refused with `LOCAL_UNSUPPORTED`.
  @discardableResult
  public func attachmentCancel(_ reference: String) async throws -> Bool { throw refuse() }

  /// Always refused with `LOCAL_UNSUPPORTED`.
  @discardableResult
  public func attachmentRemove(_ reference: String) async throws -> String? { throw refuse() }

  /// Always refused with `LOCAL_UNSUPPORTED`.
  public func vacuum() async throws { throw refuse() }
}
