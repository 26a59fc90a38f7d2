import CSQLite
import HTTPClient
import HostKit

/// Pushing, pulling, and both in order.
extension SyncEngine {
  /// Requests of one push, against a queue that never ends.
  private static let maximumRounds = 100_000
  /// After so many milliseconds with nothing but error answers for the head of the queue, pulls go on without it; and a
  /// transfer that met nothing else is begun anew.
  static let patience: Int64 = 600_000

  // MARK: Public runs

  /// Pushes until the queue is empty or stops shrinking, then pulls to the end of the checkpoint.
  ///
  /// Does nothing while blocked. A retryable failure to push ends the run; a permanent one is thrown after the pull.
  /// - Throws: `KizunaSyncError`, or `CancellationError` between two steps.
  func sync() async throws {
    try await exclusively { engine in
      engine.noticeFiles()
      engine.pushPolicy.begin()
      engine.pageLimit.begin()
      try await engine.describing {
        if !engine.isSweepDue, let ready = try engine.readyPull() {
          engine.pushPolicy = PushPolicy()
          try await engine.pullAll(first: ready)
          try engine.noteSuccess()
          return
        }
        try engine.followSchema()
        guard try engine.isReadyToSync() else { return }
        var failure = try await engine.pushAll()
        try engine.beginSweepIfDue()
        try await engine.pullAll()
        if try await engine.rereadTables() {
          failure = try await engine.pushAll() ?? failure
          try await engine.pullAll()
        }
        if let failure { throw failure }
        try engine.noteSuccess()
      }
    }
  }

  /// One push request, or none when the queue is empty. No failure is counted.
  func pushOnce() async throws {
    try await exclusively { engine in
      try await engine.describing {
        guard try engine.isReadyToSync() else { return }
        _ = try await engine.push()
      }
    }
  }

  /// One pull request. Whoever pulls so begins anew after an error of any kind but an answer that is too large (Kizuna wire
  /// contract §13.6); only a run keeps what it has.
  func pullOnce() async throws {
    try await exclusively { engine in
      try await engine.describing {
        guard try engine.isReadyToSync() else { return }
        var progress = TransferProgress()
        do {
          _ = try await engine.pull(nil, &progress)
        } catch let failure as RemoteFailure {
          if failure.kind != .tooLarge { try engine.replica().dropStaging() }
          throw failure
        }
      }
    }
  }

  /// Turns the errors of the lower floors into what the client throws.
  private func describing(_ body: () async throws -> Void) async throws {
    do {
      try await body()
    } catch let failure as RemoteFailure {
      throw failure.error
    } catch let failure as PushFailure {
      throw failure.cause.error
    } catch let error as SQLiteError {
      if error.primaryCode == SQLITE_NOTADB { noticeOverwritten() }
      if let lost { throw lost }
      throw StoreFailure.describe(error, path: settings.path)
    } catch is Replica.StaleAnswer {
      // Identity, buckets or everything changed meanwhile; the next run asks anew.
    }
  }

  /// When a run last ended well. Written at most once a minute, so that an idle client leaves the disk alone.
  private func noteSuccess() throws {
    let replica = try replica()
    let last = try replica.database.meta(.lastSync).integer ?? 0
    let now = clock.wallMilliseconds
    guard now < last || now - last >= 60_000 else {
      unwrittenSuccess = now
      return
    }
    unwrittenSuccess = nil
    try replica.noteLastSync(now)
  }

  // MARK: Push

  /// - Returns: a permanent failure, to be thrown after the pull.
  private func pushAll() async throws -> RemoteFailure? {
    var before: Int?
    for _ in 0..<Self.maximumRounds {
      try Task.checkCancellation()
      let replica = try replica()
      guard try replica.hasWork() else { break }
      let depth = try outboxDepth()
      if depth == 0 {
        // What waits for its owner waits for a token.
        if try replica.isOwnerAwaited() { try requireToken() }
        break
      }
      if let before, depth >= before { break }
      before = depth
      do {
        guard try await push() else { break }
      } catch let failure as PushFailure {
        switch pushPolicy.react(
          to: failure.cause, count: failure.taken.entries.count, isGroup: failure.taken.entries.first?.group != nil,
          bytes: failure.bytes)
        {
        case .resend:
          before = nil
        case .count:
          let message = failure.cause.error.message
          if failure.cause.kind == .tooLarge, let head = failure.taken.entries.first {
            log.warning("sync.write_too_large", ["table": .string(head.table), "key": .string(head.pk)])
          }
          if try replica.countFailure(failure.taken, message: message) < PushPolicy.budget { return failure.cause }
          raise(try replica.deadLetter(failure.taken, reason: DeadLetterReason.failedForGood(message).text))
          before = nil
        case .giveUp(let hopeless):
          raise(try replica.deadLetter(failure.taken, reason: failure.reason(hopeless).text))
          before = nil
        case .fail:
          var cause = failure.cause
          if cause.isRequestTooLarge {
            cause = failed(.refusedForNoSize(cause, function: "push", bytes: failure.bytes))
          }
          let isAlone = failure.taken.entries.count == 1 || failure.taken.entries.first?.group != nil
          try replica.noteFailure(
            failure.taken, message: cause.error.message, isTrouble: cause.isAnswer || cause.isTooSlow && isAlone)
          if try shouldPullAnyway(failure.taken) { return cause }
          throw cause
        }
      }
    }
    pushPolicy = PushPolicy()
    return nil
  }

  /// A server that answers the head of the queue with errors for too long must not keep the rows of everybody else away.
  /// Nor must a write that does not get through in the time a request has, though it goes alone.
  private func shouldPullAnyway(_ taken: Replica.Taken) throws -> Bool {
    guard let head = taken.entries.first, let since = try replica().database.troubleOfHead(head.seq) else {
      return false
    }
    return clock.wallMilliseconds - since >= Self.patience
  }

  /// What was taken when a push failed.
  private struct PushFailure: Error {
    var taken: Replica.Taken
    /// Size of the request.
    var bytes: Int
    var cause: RemoteFailure

    func reason(_ hopeless: PushPolicy.Hopeless) -> DeadLetterReason {
      let count = taken.entries.count
      return switch hopeless {
      case .tooLarge: .tooLarge(table: taken.entries.first?.table ?? "", writes: count, bytes: bytes)
      case .tooManyWrites: .tooManyWrites(count)
      }
    }
  }

  /// One request.
  /// - Returns: false when there was nothing to send.
  /// - Throws: `PushFailure` inside a run; see `push()`.
  private func push() async throws -> Bool {
    let replica = try replica()
    guard try replica.hasWork() else { return false }
    // Before anything is marked as sent.
    try requireToken()
    let taken = try replica.take(limit: pushPolicy.slice, bytes: pushPolicy.bytes)
    try raiseForeignChanges()
    guard !taken.entries.isEmpty else { return false }
    let request = PushRequest(
      entries: taken.entries, lastMutationID: taken.lastMutationID, clientID: taken.clientID,
      schemaVersion: config.schemaVersion)
    let body = request.body()
    do {
      let response = try await call("push", body: body, tables: Set(taken.entries.map(\.table)).sorted())
      let reply: PushReply
      do {
        reply = try PushReply(parsing: response.body, answering: taken.entries)
      } catch let failure as RemoteFailure {
        throw failed(failure)
      }
      pushPolicy.succeeded()
      try settle(reply, taken)
      committedAt = 0
      try report(.push, response, rows: taken.entries.count, hasMore: false)
      try raiseForeignChanges()
      return true
    } catch let failure as RemoteFailure {
      throw PushFailure(taken: taken, bytes: body.count, cause: failure)
    }
  }

  private func settle(_ reply: PushReply, _ taken: Replica.Taken) throws {
    let replica = try replica()
    let events: [KizunaSyncEngineEvent]
    switch reply {
    case .verdicts(let verdicts):
      events = try replica.settle(verdicts, of: taken)
    case .aborted(let offender, let reason, let serverRow):
      events = try replica.abort(taken, offender: offender, reason: reason, serverRow: serverRow)
    case .resetRequired:
      try replica.block("reset_required", generation: taken.generation)
      events = [.resetRequired(reason: "reset_required")]
    }
    raise(events)
  }

  // MARK: Pull

  private typealias ReadyPull = (buckets: [PullRequest.Bucket], position: Replica.PullPosition)

  /// The pull that can begin at once, because nothing waits to be pushed and nothing has to be put in order before: what a
  /// ring usually finds. Nil otherwise. Read in one snapshot, so that the file is locked once and not for each question.
  private func readyPull() throws -> ReadyPull? {
    guard remote != nil else { return nil }
    let replica = try replica()
    return try replica.database.snapshot {
      guard try replica.isInStep(), try isOwnersAndOpen(), try !replica.hasWork() else { return nil }
      let buckets = try buckets()
      return try replica.undisturbedPosition(asking: buckets).map { (buckets, $0) }
    }
  }

  private func pullAll(first: ReadyPull? = nil) async throws {
    var ready = first
    var progress = TransferProgress()
    var endOfSweep: RemoteFailure?
    while true {
      try Task.checkCancellation()
      if ready == nil { guard try isReadyToSync() else { break } }
      defer { ready = nil }
      do {
        do {
          guard try await pull(ready, &progress) else { break }
        } catch let failure as RemoteFailure where failure.kind == .tooLarge || failure.isTooSlow {
          try askForLess(failure, tables: buckets().map(\.table))
        }
      } catch let failure as RemoteFailure {
        // A sweep is nobody's hurry: what is new comes without it.
        guard endOfSweep == nil, try giveUpSweep(after: failure) else { throw failure }
        endOfSweep = failure
        progress = TransferProgress()
      }
    }
    if let endOfSweep { throw endOfSweep }
  }

  /// A page was too large, or too slow: the next one is half as long.
  /// - Throws: a failure that names the row, when the page had only one; `failure` when it is too slow again and again.
  func askForLess(_ failure: RemoteFailure, tables: [String]) throws {
    if failure.isTooSlow {
      guard pageLimit.tooSlow() else { throw failed(failure) }
      log.warning("sync.page_too_slow", ["limit": .int(pageLimit.value ?? 0)])
      return
    }
    if pageLimit.halve() {
      log.warning("sync.page_too_large", ["limit": .int(pageLimit.value ?? 0)])
      return
    }
    if failure.isRequestTooLarge { throw failed(.refusedForNoSize(failure, function: "pull", bytes: nil)) }
    let row = failure.oversizedRow
    log.warning(
      "sync.row_too_large",
      [
        "table": .string(row?.table ?? tables.joined(separator: " or ")), "key": .string(orNull: row?.pk),
      ])
    throw failed(.oneRowTooLarge(failure, tables: tables))
  }

  /// One request.
  /// - Returns: whether the transfer goes on.
  /// - Throws: `RemoteFailure`, also when the server keeps a transfer from ever ending.
  private func pull(_ ready: ReadyPull? = nil, _ progress: inout TransferProgress) async throws -> Bool {
    let buckets = try ready?.buckets ?? buckets()
    let position = try ready?.position ?? replica().pullPosition(asking: buckets)
    let request = PullRequest(
      buckets: buckets, cursor: position.cursor, clientID: position.clientID,
      schemaVersion: config.schemaVersion, limit: pageLimit.value)
    let response: HTTPResponse
    let page: PullPage
    do {
      response = try await call(
        "pull", body: request.body(), tables: buckets.map(\.table), keepsHead: pageLimit.isSmallest)
      page = try PullPage(checking: response.body)
    } catch let failure as RemoteFailure {
      if try isTransferHopeless(after: failure) { try self.replica().dropStaging() }
      throw failed(failure)
    }
    pageLimit.succeeded()
    committedAt = 0
    let goesOn: Bool
    do {
      goesOn = try take(page, position, &progress)
    } catch let fault as TransferProgress.Fault {
      if fault != .standsStill { try replica().dropStaging() }
      throw failed(RemoteFailure(fault))
    }
    try report(.pull, response, rows: page.rowCount + page.tombstoneCount, hasMore: page.hasMore)
    try raiseForeignChanges()
    return goesOn
  }

  /// What was staged may belong to a transfer that the server cannot go on with: then it starts from the checkpoint again.
  ///
  /// That no answer came says nothing of the kind, nor does a server that is down or busy: a transfer of many pages would
  /// never end if each such failure cost what came before. A server that says nothing else for long may mean this page.
  private func isTransferHopeless(after failure: RemoteFailure) throws -> Bool {
    switch failure.kind {
    case .unreachable, .noSession, .unauthorized, .tooLarge: return false
    case .permanent: return true
    case .answered, .malformed:
      guard let since = try replica().troubleOfTransfer() else { return false }
      return clock.wallMilliseconds - since >= Self.patience
    }
  }

  /// - Returns: whether there was a sweep that did not get on, and is put off.
  private func giveUpSweep(after failure: RemoteFailure) throws -> Bool {
    let replica = try replica()
    guard try replica.isSweeping() else { return false }
    let isHopeless: Bool
    switch failure.kind {
    case .noSession, .unauthorized: isHopeless = false
    case .permanent, .tooLarge: isHopeless = true
    case .unreachable where !failure.isTooSlow: isHopeless = false
    case .unreachable, .answered, .malformed:
      isHopeless = try replica.troubleOfTransfer().map { clock.wallMilliseconds - $0 >= Self.patience } ?? false
    }
    guard isHopeless else { return false }
    try replica.giveUpSweep()
    log.warning("sync.sweep_put_off", ["reason": .string(failure.error.message)])
    return true
  }

  /// - Returns: whether the transfer goes on.
  private func take(
    _ page: PullPage, _ position: Replica.PullPosition, _ progress: inout TransferProgress
  ) throws -> Bool {
    let replica = try replica()
    switch page.signal {
    case .resetRequired:
      try replica.block("reset_required", generation: position.generation)
      raise([.resetRequired(reason: "reset_required")])
      return false
    case .checkpointExpired:
      try progress.expire()
      try replica.beginRehydration(generation: position.generation)
      raise([.checkpointExpired])
      return true
    case nil: break
    }
    if page.hasMore {
      // Under the same cursor the same comes again: it need not be kept twice.
      if try progress.goOn(asked: position.cursor, next: page.cursor, isEmpty: page.isEmpty) {
        try replica.stage(page, at: position)
      }
      return true
    }
    if try replica.isNothingNew(page, at: position) { return false }
    let events = try replica.close(with: page, at: position)
    // Before anybody is told: what listeners do is no part of the commit.
    committedAt = SystemClock.monotonic
    raise(events)
    return false
  }
}
