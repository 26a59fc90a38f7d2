import HTTPClient
import HostKit

/// Reading single tables again, after a pull.
extension SyncEngine {
  /// Follows what another program did to the schema, before anything else is asked of the tables.
  func followSchema() throws {
    try translating {
      let replica = try replica()
      try replica.followSchemaIfChanged()
      try replica.fillFromQueue()
      try replica.keepUnseenOfQueue()
      try replica.retryParkedIfDue()
    }
  }

  /// Reads the tables again that need it, one by one.
  /// - Returns: whether local changes turned up that are to be pushed.
  func rereadTables() async throws -> Bool {
    var hasFound = false
    while true {
      try Task.checkCancellation()
      guard let position = try replica().nextReread() else { return hasFound }
      guard let found = try await reread(position) else { return hasFound }
      if found > 0 { hasFound = true }
    }
  }

  /// - Returns: how many local changes turned up; nil when the server wants something else first.
  private func reread(_ position: Replica.RereadPosition) async throws -> Int? {
    guard let bucket = try buckets().first(where: { $0.table == position.table }) else { return nil }
    let known = rereading
    rereading = nil
    var reading = try Rereading(position, bucket, of: replica(), since: clock.now)
    if let known, known.leads(to: reading) { reading = known } else { try replica().clearReread() }
    var progress = TransferProgress()
    var cursor: String { reading.cursor }
    while true {
      try Task.checkCancellation()
      // Without the client's id: the server may note by it how far this client has come.
      let request = PullRequest(
        buckets: [bucket], cursor: cursor, clientID: nil, schemaVersion: config.schemaVersion, limit: pageLimit.value)
      let page: PullPage
      do {
        page = try PullPage(
          checking: await call(
            "pull", body: request.body(), tables: [bucket.table], keepsHead: pageLimit.isSmallest
          ).body)
      } catch let failure as RemoteFailure where failure.kind == .tooLarge || failure.isTooSlow {
        // The same page again: to start over would lead back here for ever, since the limit grows on the way.
        rereading = reading
        try askForLess(failure, tables: [position.table])
        continue
      } catch let failure as RemoteFailure {
        if failure.kind != .permanent { rereading = reading }
        throw failed(failure)
      } catch {
        rereading = reading
        throw error
      }
      pageLimit.succeeded()
      guard page.signal == nil else {
        if page.signal == .resetRequired {
          try replica().block("reset_required", generation: position.generation)
          raise([.resetRequired(reason: "reset_required")])
        } else if cursor == "0" {
          throw failed(RemoteFailure(.expiresAgain))
        }
        return nil
      }
      guard page.hasMore else {
        let found = try replica().closeReread(with: page, at: position)
        raise([.localChanged])
        if found > 0 { try replica().harvestNow() }
        try raiseForeignChanges()
        return found
      }
      do {
        if try progress.goOn(asked: cursor, next: page.cursor, isEmpty: page.isEmpty) {
          try replica().stageReread(page)
        }
      } catch let fault as TransferProgress.Fault {
        throw failed(RemoteFailure(fault))
      }
      reading.cursor = page.cursor
    }
  }
}

/// How far the rows of one table have come that are read again alone. Its pages are in a temporary table of the replica.
struct Rereading {
  let table: String
  private let generation: Int64
  private let bucket: JSONValue
  private let since: UInt64
  /// The checkpoint, where local rows are to be compared: what a pull brought since must not be taken for changed here.
  private let checkpoint: String?
  var cursor = "0"

  init(_ position: Replica.RereadPosition, _ bucket: PullRequest.Bucket, of replica: Replica, since: UInt64) throws {
    table = position.table
    generation = position.generation
    self.bucket = PullRequest.json(bucket)
    self.since = since
    checkpoint = try replica.database.rereads()[table]?.keep == .changes ? replica.durableCursor() : nil
  }

  /// Whether its pages are the beginning of what is to be read now.
  func leads(to other: Rereading) -> Bool {
    table == other.table && generation == other.generation && bucket == other.bucket
      && checkpoint == other.checkpoint && other.since - since < UInt64(Replica.longestTransfer) * 1_000_000
  }
}

extension Replica {
  /// Nothing has to be done about the tables before a pull.
  func isInStep() throws -> Bool {
    guard try readSchemaCookie() == schemaCookie, tablesToFill.isEmpty, !isRetryDue, try !isSweepAsked() else {
      return false
    }
    if setAside.isEmpty { return try database.meta(.reread).isNull }
    return try database.rereads().tables.keys.allSatisfy { setAside[$0] != nil }
  }
}
