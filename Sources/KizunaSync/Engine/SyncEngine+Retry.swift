/// Refused writes, given another chance.
extension SyncEngine {
  /// Queues a refused write again.
  ///
  /// Raises `.localChanged`, then `.queueDepth`.
  /// - Returns: the ids under which it is queued; empty when no such entry is held.
  func retryRejection(_ mutationID: String) throws -> [String] {
    noticeFiles()
    let ids = try translating { try replica().retryRejection(mutationID) }
    if !ids.isEmpty { raise([.localChanged, try queueDepthEvent()]) }
    try raiseForeignChanges()
    return ids
  }
}
