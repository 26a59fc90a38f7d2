/// The closed catalogue of error codes (Kizuna wire contract, section 15). An error of this package carries one of these
/// and a sentence a person can act on.
public enum ErrorCode: String, Sendable, CaseIterable {
  case bucketUnset = "BUCKET_UNSET"
  case configInvalid = "CONFIG_INVALID"
  case engineUnavailable = "ENGINE_UNAVAILABLE"
  case json = "JSON"
  case localConstraint = "LOCAL_CONSTRAINT"
  case localUnsupported = "LOCAL_UNSUPPORTED"
  case malformedPushResponse = "MALFORMED_PUSH_RESPONSE"
  case permanentTransport = "PERMANENT_TRANSPORT"
  case remote = "REMOTE"
  case softDeleteViolation = "SOFT_DELETE_VIOLATION"
  case store = "STORE"
  case storeBusy = "STORE_BUSY"
  case storeUnavailable = "STORE_UNAVAILABLE"
  case transfer = "TRANSFER"
  case unknownBatchOffender = "UNKNOWN_BATCH_OFFENDER"
  case unknownOp = "UNKNOWN_OP"
  case unknownSignal = "UNKNOWN_SIGNAL"
  case unknownTable = "UNKNOWN_TABLE"
  case unknownVerdictReason = "UNKNOWN_VERDICT_REASON"
  case verdictBijection = "VERDICT_BIJECTION"

  case attachmentHashMismatch = "ATTACHMENT_HASH_MISMATCH"
  case attachmentNotYetAvailable = "ATTACHMENT_NOT_YET_AVAILABLE"
  case attachmentOwnerMissing = "ATTACHMENT_OWNER_MISSING"
  case attachmentPortsMissing = "ATTACHMENT_PORTS_MISSING"
  case attachmentRowGone = "ATTACHMENT_ROW_GONE"
  case attachmentTransferTimeout = "ATTACHMENT_TRANSFER_TIMEOUT"
  case attachmentUnverified = "ATTACHMENT_UNVERIFIED"
  case attachmentUploadExpired = "ATTACHMENT_UPLOAD_EXPIRED"

  /// Whether the same call may succeed later without anybody changing anything.
  public var isRetryable: Bool {
    switch self {
    case .remote, .storeBusy, .transfer, .attachmentHashMismatch, .attachmentNotYetAvailable,
      .attachmentTransferTimeout, .attachmentUnverified, .attachmentUploadExpired:
      true
    default: false
    }
  }
}
