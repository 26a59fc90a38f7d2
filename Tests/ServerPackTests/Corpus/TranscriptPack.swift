import HostKit
import KizunaSyncTestSupport

/// Plays the server half of a transcript against the pack.
struct TranscriptPack {
  private let pack: PackDatabase
  private let transcript: Transcript
  private let extras: TranscriptExtras
  /// Recorded cursors and those the server gave instead.
  private var cursors: [String: String] = [:]
  /// What a seq of this server's has more than the recorded one.
  private var base: Int64 = 0
  /// The columns that somebody has written, by table and key; a real table has the others too.
  private var written: [String: Set<String>] = [:]

  init(_ pack: PackDatabase, _ transcript: Transcript, _ extras: TranscriptExtras) {
    self.pack = pack
    self.transcript = transcript
    self.extras = extras
  }

  mutating func prepare() async throws {
    for (name, table) in transcript.context.tables {
      let keys = keyColumns(name)
      let columns = keys + (Self.columns[name] ?? []).filter { !keys.contains($0) }
      let bucket = table.bucketColumn ?? ""
      try await pack.sql(
        """
        create table public.\(name) (\(columns.map { "\($0) \(Self.type(name, $0))" }.joined(separator: ", ")),
          primary key (\(keys.joined(separator: ", "))));
        create index on public.\(name) (\(bucket));
        alter table public.\(name) enable row level security;
        create policy own on public.\(name) to authenticated
        using (\(bucket) = (select auth.uid())) with check (\(bucket) = (select auth.uid()));
        select kizunasync.sync_table('\(name)', key_columns => '{\(keys.joined(separator: ","))}',
          bucket_column => '\(bucket)', sync_mode => '\(extras.pullOnlyTables.contains(name) ? "pull-only" : "read-write")',
          conflict_mode => '\(table.conflictMode)', conflict_journal => \(table.conflictJournal),
          min_schema_version => \(transcript.context.minSchemaVersion));
        """)
    }
    if let scan = transcript.context.maxPullScan {
      try await pack.sql("update kizunasync.settings set max_pull_scan = \(scan)")
    }
    base = Int64(try await pack.cursor(0)) ?? 0
    try await pack.sql("update kizunasync.horizon set highest = \(extras.firstSeq - 1)")
    for operation in extras.history { try await make(operation) }
  }

  /// - Returns: nil, or in what the answer differs from the recording.
  mutating func play(_ step: Transcript.Step) async throws -> String? {
    switch step.kind {
    case .server(let operation): try await make(operation)
    case .rpc(let function, let request, let response):
      let answer = try await call(function, request)
      if function == .pull, let recorded = response["cursor"]?.stringValue, let live = answer["cursor"]?.stringValue,
        recorded != "0"
      {
        cursors[recorded] = live
      }
      let expected = comparable(response, of: request, isRecorded: true)
      let got = comparable(answer, of: request, isRecorded: false)
      if expected != got {
        return "recorded: \(JSONWriter.text(expected, indent: 2))\nanswered: \(JSONWriter.text(got, indent: 2))"
      }
    case .fault(.dropAck(let function, let request)): _ = try await call(function, request)
    case .fault(.transportError), .local, .assert: break
    }
    return nil
  }

  private mutating func make(_ operation: Transcript.ServerOperation) async throws {
    switch operation {
    case .reap:
      try await pack.sql(
        """
        update kizunasync.settings set tombstone_ttl_days = 0;
        select kizunasync.reap_tombstones();
        update kizunasync.settings set tombstone_ttl_days = 30;
        """)
    case .delete(let table, let pk):
      let condition = key(table, pk).map { "\($0) = \(PackDatabase.quoted($1))" }.joined(separator: " and ")
      try await pack.sql("delete from public.\(table) where \(condition)")
    case .upsert(let table, let pk, let columns, let hlc):
      written["\(table) \(pk)", default: []].formUnion(columns.keys)
      let keys = key(table, pk)
      let cells = columns.merging(keys.map { ($0, JSONValue.string($1)) }) { $1 }
      let names = cells.keys.sorted()
      var text = """
        insert into public.\(table) (\(names.joined(separator: ", ")))
        select \(names.map { "r.\($0)" }.joined(separator: ", "))
        from jsonb_populate_record(null::public.\(table), \(PackDatabase.quoted(JSONWriter.text(.object(cells))))) as r
        on conflict (\(keys.map(\.0).joined(separator: ", ")))
        do update set \(names.map { "\($0) = excluded.\($0)" }.joined(separator: ", "));
        """
      let parts = hlc?.split(separator: "|", maxSplits: 2).map(String.init) ?? []
      if parts.count == 3 {
        for column in columns.keys {
          text += """
            insert into kizunasync.clocks values ('\(table)', \(PackDatabase.quoted(pk)), '\(column)', '\(parts[0])', \(parts[1]), '\(parts[2])')
            on conflict on constraint clocks_pkey
            do update set instant = excluded.instant, logical = excluded.logical, node = excluded.node;
            """
        }
      }
      try await pack.sql(text)
    }
  }

  private mutating func call(_ function: Transcript.Function, _ request: JSONValue) async throws -> JSONValue {
    var request = request.objectValue ?? [:]
    if let cursor = request["cursor"]?.stringValue { request["cursor"] = .string(live(cursor)) }
    for mutation in request["batch"]?["mutations"]?.arrayValue ?? [] {
      let named = ["columns", "transforms"].flatMap { mutation[$0]?.objectValue.map { Array($0.keys) } ?? [] }
      written[Self.place(mutation), default: []].formUnion(named)
    }
    return try await pack.call(function.rawValue, .object(request), as: transcript.context.userID)
  }

  /// The cursor that stands here for a recorded one: the one that answered there, or that of so many operations. Only the
  /// start is the same everywhere.
  private func live(_ cursor: String) -> String {
    if let known = cursors[cursor] { return known }
    guard let seq = Int64(cursor), seq > 0 else { return cursor }
    return "\(base + seq)"
  }

  // MARK: Comparing

  /// An answer without the values of seqs, cursors and times, and without columns that the recording cannot have.
  private func comparable(_ answer: JSONValue, of request: JSONValue, isRecorded: Bool) -> JSONValue {
    guard var answer = answer.objectValue else { return answer }
    let mutations = request["batch"]?["mutations"]?.arrayValue ?? []
    func place(_ id: JSONValue?) -> String {
      mutations.first { $0["mutation_id"] == id }.map(Self.place) ?? ""
    }
    answer["rows"] = answer["rows"]?.arrayValue.map { rows in
      .array(rows.map { masked($0, ["seq"]).setting("row", row($0["row"], Self.place($0), isRecorded)) })
    }
    answer["tombstones"] = answer["tombstones"]?.arrayValue.map {
      .array($0.map { masked($0, ["seq", "deleted_at"]) })
    }
    answer["conflicts"] = answer["conflicts"]?.arrayValue.map { .array($0.map { masked($0, ["winner_seq"]) }) }
    answer["cursor"] = answer["cursor"]?.stringValue.map { .string($0.contains(":") ? "start:high" : "high") }
    answer["verdicts"] = answer["verdicts"]?.arrayValue.map { verdicts in
      .array(
        verdicts.map { $0.setting("server_row", row($0["server_row"], place($0["mutation_id"]), isRecorded)) })
    }
    answer["batch"] = answer["batch"].map {
      $0.setting("server_row", row($0["server_row"], place($0["offender_mutation_id"]), isRecorded))
    }
    return .object(answer)
  }

  private func masked(_ item: JSONValue, _ names: [String]) -> JSONValue {
    names.reduce(item) { $0[$1]?.stringValue == nil ? $0 : $0.setting($1, "…") }
  }

  private func row(_ value: JSONValue?, _ place: String, _ isRecorded: Bool) -> JSONValue? {
    guard let cells = value?.objectValue else { return value }
    let table = String(place.split(separator: " ")[0])
    let keys = keyColumns(table)
    let isDeclared = transcript.context.tables[table]?.keyColumns.isEmpty == false
    let columns = written[place] ?? []
    var kept: [String: JSONValue] = [:]
    for (name, cell) in cells where isRecorded || columns.contains(name) || isDeclared && keys.contains(name) {
      // The recording spells large numbers of an untyped table as text; a real column has one type.
      if table == "counters", let number = cell.numberValue {
        kept[name] = .string(number.lexeme)
      } else {
        kept[name] = cell
      }
    }
    return .object(kept)
  }

  private static func place(_ item: JSONValue) -> String {
    "\(item["table"]?.stringValue ?? "") \(item["pk"]?.stringValue ?? "")"
  }

  // MARK: Tables

  private func keyColumns(_ table: String) -> [String] {
    let declared = transcript.context.tables[table]?.keyColumns ?? []
    return declared.isEmpty ? ["id"] : declared
  }

  private func key(_ table: String, _ pk: String) -> [(String, String)] {
    let columns = keyColumns(table)
    let parts = columns.count == 1 ? [pk] : ((try? JSONValue(parsing: pk))?.arrayValue?.compactMap(\.stringValue) ?? [])
    return Array(zip(columns, parts))
  }

  private static func type(_ table: String, _ column: String) -> String {
    types["\(table).\(column)"] ?? (["id", "owner_id"].contains(column) ? "uuid" : "text")
  }

  /// The columns of the tables that transcripts speak of, besides the keys.
  private static let columns = [
    "counters": ["owner_id", "total"], "notices": ["owner_id", "body"], "places": ["owner_id", "holder"],
    "seats": ["owner_id", "holder"], "todos": ["owner_id", "title", "done", "likes", "labels"],
  ]

  private static let types = [
    "counters.total": "numeric", "notices.id": "bigint", "seats.hall": "bigint", "seats.seat": "integer",
    "todos.done": "boolean", "todos.labels": "text[]", "todos.likes": "integer",
  ]
}

extension JSONValue {
  /// The same object with a member set, or removed for nil.
  fileprivate func setting(_ name: String, _ value: JSONValue?) -> JSONValue {
    guard var members = objectValue else { return self }
    members[name] = value
    return .object(members)
  }
}
