import HostKit
import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

extension SyncEngine {
  func withReplica<Result: Sendable>(_ body: (Replica) throws -> Result) throws -> Result {
    try body(try replica())
  }
}

/// Plays the client half of a transcript on a real engine with a real file.
final class ClientReplay {
  struct Mode: Sendable, CustomTestStringConvertible {
    var name: String
    /// A new engine on the same file before each step: nothing may live in memory only.
    var restarts = false
    /// Local writes that plain SQL can express are made by another connection.
    var bySQL = false
    /// The answers come from the server model, which must agree with the recording too.
    var againstServer = false

    var testDescription: String { name }

    static let all = [
      Mode(name: "library"), Mode(name: "restarts", restarts: true), Mode(name: "sql", bySQL: true),
      Mode(name: "sql and restarts", restarts: true, bySQL: true), Mode(name: "with server", againstServer: true),
    ]
  }

  private let transcript: Transcript
  private let extras: TranscriptExtras
  private let mode: Mode
  private let config: KizunaSyncClientConfig
  private let transport = StepTransport()
  private let events = Locked<[String]>([])
  private var engine: SyncEngine
  private var server: TranscriptServer?
  /// What local steps may leave out.
  private var remembered: [String: LocalWrite] = [:]
  /// Our minted id → the recorded one.
  private var ids: [String: String] = [:]
  private var before: [JSONValue] = []
  private(set) var skipped = 0
  private(set) var checks = 0

  init(_ transcript: Transcript, mode: Mode, path: String) async throws {
    self.transcript = transcript
    self.mode = mode
    extras = TranscriptExtras.of(transcript.name)
    config = Self.config(transcript, extras, path: path)
    engine = try await Self.open(config, transport, events)
    if mode.againstServer { server = try TranscriptServer(transcript, extras: extras) }
    remember()
    if let cursor = Self.pulls(transcript).first?["cursor"]?.stringValue, cursor != "0" {
      try await engine.seedCheckpoint(cursor)
    }
    for row in extras.clientRows {
      try await engine.withReplica { replica in
        try replica.transaction(applying: true) { try replica.show(row.table, pk: row.pk, row: row.row, firm: true) }
      }
    }
    events.withLock { $0 = [] }
  }

  func close() async {
    await engine.dispose()
  }

  private static func pulls(_ transcript: Transcript) -> [JSONValue] {
    transcript.steps.compactMap { step in
      switch step.kind {
      case .rpc(.pull, let request, _): request
      case .fault(.dropAck(.pull, let request)): request
      case .fault(.transportError(.pull, let request)): request
      default: nil
      }
    }
  }

  private static func config(_ transcript: Transcript, _ extras: TranscriptExtras, path: String)
    -> KizunaSyncClientConfig
  {
    let context = transcript.context
    let tables = context.tables.map { name, table in
      (
        name,
        KizunaSyncTableConfig(
          bucket: table.bucketColumn.map(KizunaSyncBucket.byOwner) ?? .none, softDeleteColumn: table.softDeleteColumn,
          conflictMode: table.conflictMode == "hlc" ? .hlc : .arrival,
          syncMode: extras.pullOnlyTables.contains(name) ? .pullOnly : .readWrite,
          key: table.keyColumns.isEmpty ? ["id"] : table.keyColumns)
      )
    }
    return KizunaSyncClientConfig(
      clientId: context.clientID, schemaVersion: context.schemaVersion,
      tables: Dictionary(uniqueKeysWithValues: tables), databasePath: path,
      remote: KizunaSyncRemoteConfig(
        url: "http://127.0.0.1:1", publishableKey: "key", accessToken: TestToken.user(context.userID)),
      defaultLimit: pulls(transcript).lazy.compactMap { $0["limit"]?.intValue }.first)
  }

  private static func open(
    _ config: KizunaSyncClientConfig, _ transport: StepTransport, _ events: Locked<[String]>
  ) async throws -> SyncEngine {
    try await SyncEngine.open(config: config, http: transport, clock: VirtualClock(), log: .none) { event in
      events.withLock { $0.append(event.wireName) }
    }
  }

  private func remember() {
    for step in transcript.steps {
      let request: JSONValue
      switch step.kind {
      case .rpc(.push, let recorded, _): request = recorded
      case .fault(.dropAck(.push, let recorded)): request = recorded
      default: continue
      }
      let isAtomic = request["batch"]?["atomic"]?.boolValue ?? false
      for mutation in request["batch"]?["mutations"]?.arrayValue ?? [] {
        guard let id = mutation["mutation_id"]?.stringValue, remembered[id] == nil else { continue }
        remembered[id] = LocalWrite(
          table: "", op: .update, precondition: mutation["precondition"]?.objectValue,
          hlc: mutation["hlc"]?.stringValue,
          group: isAtomic ? "atomic-\(step.n)" : nil)
      }
    }
  }

  // MARK: Steps

  func run() async throws {
    for step in transcript.steps {
      if mode.restarts { try await restart() }
      try await play(step)
      try await checkInvariants("step \(step.n)")
    }
    try await evaluate(transcript.postconditions, "postcondition")
  }

  private func restart() async throws {
    await engine.dispose()
    let kept = events.withLock { $0 }
    engine = try await Self.open(config, transport, events)
    events.withLock { $0 = kept }
  }

  private func play(_ step: Transcript.Step) async throws {
    let place = "step \(step.n)"
    switch step.kind {
    case .server: _ = try server?.play(step)
    case .local(let write): try await perform(write, place)
    case .assert(let checks):
      try await evaluate(checks, place)
      events.withLock { $0 = [] }
    case .rpc(let function, let request, let response):
      if function == .pull, Self.sorted(request)["buckets"] != ownBuckets {
        skipped += 1
        return
      }
      let answer = try serverAnswer(step, response, place)
      let error = try await call(function, recorded: request, reply: answer, place)
      #expect(error == nil, "\(place) failed")
      if response["signal"]?["type"] == "RESET_REQUIRED" {
        for function in [Transcript.Function.push, .pull] {
          _ = try await call(function, recorded: nil, reply: [:], place)
          #expect(transport.count == 0, "\(place): something was sent while blocked")
        }
      }
    case .fault(let fault): try await play(fault, step, place)
    }
  }

  private func play(_ fault: Transcript.Fault, _ step: Transcript.Step, _ place: String) async throws {
    let depth = try await engine.outboxDepth()
    let function: Transcript.Function
    let recorded: JSONValue?
    switch fault {
    case .dropAck(let target, let request):
      (function, recorded) = (target, request)
      _ = try server?.play(step)
    case .transportError(let target, let request): (function, recorded) = (target, request)
    }
    let error = try await call(function, recorded: recorded, reply: nil, place)
    #expect(error?.code == "REMOTE" && transport.count == 1, "\(place): the call must send and throw")
    #expect(try await engine.outboxDepth() == depth, "\(place): the write stays queued")
    let isStaged = try await engine.withReplica { try !$0.database.meta(.pageCursor).isNull }
    #expect(function == .push || !isStaged, "\(place): staging is dropped")
  }

  private func serverAnswer(_ step: Transcript.Step, _ recorded: JSONValue, _ place: String) throws -> JSONValue {
    if let difference = try server?.play(step) { Issue.record("\(place): the server differs: \(difference)") }
    return recorded
  }

  private var ownBuckets: JSONValue {
    let buckets = transcript.context.tables.map { name, table -> JSONValue in
      [
        "table": .string(name),
        "params": .object(table.bucketColumn.map { [$0: .string(transcript.context.userID)] } ?? [:]),
      ]
    }
    return .array(buckets.sorted { "\($0)" < "\($1)" })
  }

  // MARK: Local writes

  private func perform(_ step: Transcript.LocalWrite, _ place: String) async throws {
    let depth = try await engine.outboxDepth()
    let known = remembered[step.mutationID]
    let write = LocalWrite(
      table: step.table, pk: step.pk, op: KizunaSyncOp(rawValue: step.op.rawValue)!, columns: step.columns,
      transforms: step.transforms, precondition: step.precondition ?? known?.precondition, mutationID: step.mutationID,
      hlc: step.hlc ?? known?.hlc, group: known?.group)
    var code: String?
    do {
      if try await !writeBySQL(write, expectsError: step.expectedError != nil) { try await engine.apply(write) }
    } catch let error as KizunaSyncError {
      code = error.code
    }
    checks += 1
    #expect(code == step.expectedError, "\(place)")
    #expect(try await engine.outboxDepth() == depth + (code == nil ? 1 : 0), "\(place): queue depth")
  }

  /// - Returns: false where plain SQL cannot say it.
  private func writeBySQL(_ write: LocalWrite, expectsError: Bool) async throws -> Bool {
    guard mode.bySQL, !expectsError, write.transforms == nil, write.precondition == nil, write.hlc == nil,
      write.group == nil
    else { return false }
    let layout = try await engine.withReplica { replica in
      try replica.transaction {
        try replica.ensure(write.columns.keys, of: write.table)
        try replica.learn(write.columns, table: write.table, firm: false)
      }
      return UncheckedLayout(layout: try replica.layout(write.table))
    }.layout
    let other = try Database(DatabaseConfiguration(path: config.databasePath, role: .visitor))
    defer { other.close() }
    let key = layout.keyCells(write.pk ?? "")
    let cells = write.columns.filter { !layout.isKey($0.key) }.map { name, value in
      (name, CellCodec.encode(value, kind: layout[name]?.kind))
    }
    switch write.op {
    case .insert:
      let names = layout.config.key + cells.map(\.0)
      try other.run(
        "INSERT INTO \(layout.quoted)(\(SQL.names(names))) VALUES (\(SQL.parameters(names.count)))",
        key + cells.map(\.1))
    case .update:
      let assignments = cells.map { "\(SQL.name($0.0)) = ?" }.joined(separator: ", ")
      try other.run("UPDATE \(layout.quoted) SET \(assignments) WHERE \(layout.whereKey)", cells.map(\.1) + key)
    case .delete: try other.run(layout.deleteRow, key)
    }
    return other.changes == 1
  }

  /// A layout is immutable; the test alone uses it.
  private struct UncheckedLayout: @unchecked Sendable {
    let layout: TableLayout
  }

  // MARK: Calls

  private func call(
    _ function: Transcript.Function, recorded: JSONValue?, reply: JSONValue?, _ place: String
  ) async throws -> KizunaSyncError? {
    before = try await snapshot()
    let adopted = Locked(ids)
    let mapsIDs = mode.bySQL
    transport.prepare { function, sent in
      if mapsIDs, function == .push { adopted.withLock { Self.pair(sent, recorded, into: &$0) } }
      let names = adopted.withLock { $0 }
      return reply.map { Self.renamed($0, Dictionary(uniqueKeysWithValues: names.map { ($1, $0) })) }
    }
    var thrown: KizunaSyncError?
    do {
      switch function {
      case .push: try await engine.pushOnce()
      case .pull: try await engine.pullOnce()
      }
    } catch let error as KizunaSyncError {
      thrown = error
    }
    ids = adopted.withLock { $0 }
    if let recorded, !recorded.isNull {
      checks += 1
      let sent = transport.sent.map { Self.sorted(Self.renamed($0, ids)) }
      #expect(sent == Self.sorted(withoutCapturedKeys(recorded, sent)), "\(place): the request differs")
    }
    return thrown
  }

  private static func pair(_ sent: JSONValue, _ recorded: JSONValue?, into ids: inout [String: String]) {
    let ours = sent["batch"]?["mutations"]?.arrayValue ?? []
    let theirs = recorded?["batch"]?["mutations"]?.arrayValue ?? []
    for (our, their) in zip(ours, theirs) {
      guard let our = our["mutation_id"]?.stringValue, let their = their["mutation_id"]?.stringValue else { continue }
      if ids[our] == nil { ids[our] = their }
    }
  }

  private static func renamed(_ value: JSONValue, _ names: [String: String]) -> JSONValue {
    switch value {
    case .string(let text): .string(names[text] ?? text)
    case .array(let elements): .array(elements.map { renamed($0, names) })
    case .object(let members): .object(members.mapValues { renamed($0, names) })
    default: value
    }
  }

  private static func sorted(_ request: JSONValue) -> JSONValue {
    guard var members = request.objectValue, let buckets = members["buckets"]?.arrayValue else { return request }
    members["buckets"] = .array(buckets.sorted { "\($0)" < "\($1)" })
    return .object(members)
  }

  /// A captured insert leaves the key columns to the key.
  private func withoutCapturedKeys(_ recorded: JSONValue, _ sent: JSONValue?) -> JSONValue {
    guard mode.bySQL, var request = recorded.objectValue, var batch = request["batch"]?.objectValue,
      let mutations = batch["mutations"]?.arrayValue
    else { return recorded }
    let ours = sent?["batch"]?["mutations"]?.arrayValue ?? []
    batch["mutations"] = .array(
      mutations.enumerated().map { index, mutation in
        guard index < ours.count, mutation["op"] == "insert", var members = mutation.objectValue,
          let table = mutation["table"]?.stringValue, let columns = members["columns"]?.objectValue
        else { return mutation }
        let key = config.tables[table]?.key ?? []
        members["columns"] = .object(
          columns.filter { !key.contains($0.key) || ours[index]["columns"]?[$0.key] != nil })
        return .object(members)
      })
    request["batch"] = .object(batch)
    return .object(request)
  }

  // MARK: Checks

  /// The durable cursor and every visible row.
  private func snapshot() async throws -> [JSONValue] {
    let cursor = try await engine.checkpoint().cursor
    let tables = config.tables.keys.sorted()
    let rows = try await engine.read { session in
      try tables.flatMap { table in
        try session.rows(table).map { JSONValue.array([.string(table), .string($0.pk), .object($0.columns)]) }
      }
    }
    return [.string(cursor)] + rows.sorted { "\($0)" < "\($1)" }
  }

  private func evaluate(_ checks: [Transcript.Check], _ place: String) async throws {
    for check in checks {
      self.checks += 1
      switch check {
      case .cursor(let value): #expect(try await engine.checkpoint().cursor == value, "\(place)")
      case .outboxDepth(let depth): #expect(try await engine.outboxDepth() == depth, "\(place)")
      case .event(let name): #expect(events.withLock { $0 }.contains(name), "\(place)")
      case .noIntermediateCommit: #expect(try await snapshot() == before, "\(place)")
      case .localRow(let table, let pk, let row):
        var seen = try await engine.read { try $0.row(table, pk: pk)?.columns }
        if transcript.context.tables[table]?.keyColumns.isEmpty ?? true { seen?["id"] = nil }
        #expect(seen == row, "\(place): \(table) \(pk)")
      }
    }
  }

  /// What holds after every transaction, whatever the transcript says.
  private func checkInvariants(_ place: String) async throws {
    let broken = try await engine.withReplica { replica in
      try replica.harvestNow()
      return try replica.brokenInvariants()
    }
    #expect(broken == [], "\(place)")
    #expect(!events.withLock { $0 }.contains("COLUMN_OVERWRITTEN"), "\(place): an own write was reported")
  }
}

extension KizunaSyncEngineEvent {
  /// The name in the protocol's vocabulary (Kizuna wire contract §14).
  var wireName: String {
    switch self {
    case .localChanged: "LOCAL_CHANGED"
    case .mutationRejected: "MUTATION_REJECTED"
    case .queueDepth: "QUEUE_DEPTH"
    case .resetRequired: "RESET_REQUIRED"
    case .checkpointExpired: "CHECKPOINT_EXPIRED"
    case .batchAborted: "BATCH_ABORTED"
    case .deadLetter: "DEAD_LETTER"
    case .columnOverwritten: "COLUMN_OVERWRITTEN"
    }
  }
}
