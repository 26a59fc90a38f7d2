import HostKit
import SyncServer

extension SyncServerConfiguration {
  /// The server a transcript talks to.
  public init(_ transcript: Transcript, extras: TranscriptExtras) {
    let context = transcript.context
    var tables: [String: SyncTable] = [:]
    for (name, table) in context.tables {
      tables[name] = SyncTable(
        bucketColumn: table.bucketColumn, keyColumns: table.keyColumns.isEmpty ? ["id"] : table.keyColumns,
        conflictMode: table.conflictMode == "hlc" ? .hlc : .arrival,
        syncMode: extras.pullOnlyTables.contains(name) ? .pullOnly : .readWrite, conflictJournal: table.conflictJournal,
        minSchemaVersion: context.minSchemaVersion, softDeleteColumn: table.softDeleteColumn,
        columns: extras.columns[name] ?? [:])
    }
    self.init(tables: tables, tombstoneTTLDays: context.tombstoneTTLDays)
    if let scan = context.maxPullScan { maxPullScan = scan }
  }
}

/// The server half of a transcript: other devices' writes are made, recorded requests are answered.
///
/// ```swift
/// var server = try TranscriptServer(transcript)
/// for step in transcript.steps {
///   if case .rpc(let function, let request, let response) = step.kind {
///     #expect(server.answer(function, request, at: step.n) == response)
///   } else { try server.play(step) }
/// }
/// ```
public struct TranscriptServer: Sendable {
  public private(set) var state: SyncServerState
  private let caller: Caller

  /// Why a transcript cannot be played against this server; nil when it can. A server that draws its seqs in commit
  /// order has no write that is stamped and not yet visible.
  public static func inapplicable(_ extras: TranscriptExtras) -> String? {
    extras.heldWrites.isEmpty ? nil : "needs writes that are stamped before they are committed"
  }

  /// - Throws: `RPCError` when the history cannot be written.
  public init(_ transcript: Transcript, extras: TranscriptExtras? = nil) throws {
    let extras = extras ?? .of(transcript.name)
    let configuration = SyncServerConfiguration(transcript, extras: extras)
    state = SyncServerState(configuration: configuration, firstSeq: extras.firstSeq)
    caller = .user(transcript.context.userID)
    for operation in extras.history { try make(operation, at: 0) }
  }

  /// The time inside step `n`, milliseconds since 1970: `2026-01-01T00:00:NN.000Z`.
  public static func time(at n: Int) -> Int64 { 1_767_225_600_000 + Int64(n) * 1000 }

  public mutating func make(_ operation: Transcript.ServerOperation, at n: Int) throws {
    let now = Self.time(at: n)
    switch operation {
    case .upsert(let table, let pk, let columns, let hlc):
      try state.apply([.upsert(table: table, pk: pk, columns: columns, hlc: hlc)], now: now)
    case .delete(let table, let pk): try state.apply([.delete(table: table, pk: pk)], now: now)
    case .reap: state.reap(now: nil)
    }
  }

  public mutating func answer(_ function: Transcript.Function, _ request: JSONValue, at n: Int) -> RPCAnswer {
    switch function {
    case .pull: state.pull(request, caller: caller)
    case .push: state.push(request, caller: caller, now: Self.time(at: n))
    }
  }

  /// Plays one step and compares what the recording says about it; steps of the client alone do nothing.
  ///
  /// - Returns: nil, or in what the server differs from the recording.
  public mutating func play(_ step: Transcript.Step) throws -> Difference? {
    switch step.kind {
    case .server(let operation):
      try make(operation, at: step.n)
      return nil
    case .rpc(let function, let request, let response):
      let answer = answer(function, request, at: step.n)
      return answer == .success(response) ? nil : Difference(n: step.n, expected: response, answer: answer)
    case .fault(.dropAck(let function, let request)):
      let answer = answer(function, request, at: step.n)
      guard case .failure = answer else { return nil }
      return Difference(n: step.n, expected: nil, answer: answer)
    case .fault(.transportError), .local, .assert: return nil
    }
  }

  public struct Difference: Sendable, CustomStringConvertible {
    public let n: Int
    /// What the recording has; nil where any success would do.
    public let expected: JSONValue?
    public let answer: RPCAnswer

    public var description: String {
      let recorded = expected.map { JSONWriter.text($0, indent: 2) } ?? "any success"
      return "step \(n)\nrecorded: \(recorded)\nanswered (\(answer.status)): \(JSONWriter.text(answer.body, indent: 2))"
    }
  }
}
