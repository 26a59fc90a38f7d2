/// Where an attachment stands: `queued`, `uploading`, `downloading`, `synced`, `failed`, `orphaned`, `evicted`, `missing`.
public struct KizunaSyncAttachmentStatus: Equatable, Sendable {
  public let state: String
  public let progress: Int64
  public let error: String?
  public let localPath: String?
  public let permanent: Bool
  public let errorCode: String?
}

/// What ``KizunaSyncClient/fromFile(table:column:pk:sourcePath:mediaType:)`` answers.
public struct KizunaSyncFromFileResult: Equatable, Sendable {
  public let reference: String
  public let sha256: String
  public let size: Int64
  public let mediaType: String
  public let localPath: String
}
