import HostKit

/// One mutation on its way to the server. `columns` and the other members are the final wire texts, rendered once: a retry
/// sends the same bytes whatever has been learned meanwhile.
struct OutboxEntry: Equatable {
  enum State: Int64 {
    case queued = 0
    /// Sent at least once; from here the body never changes.
    case sent = 1
    /// Applied by the server. Stays as an overlay until the next checkpoint closes, or a pull that began before it would
    /// show the old value again.
    case acknowledged = 2
  }

  var seq: Int64
  var mutationID: String
  var table: String
  var pk: String
  var op: KizunaSyncOp
  var columns: String
  var transforms: String?
  var precondition: String?
  var hlc: String?
  /// The all-or-nothing group it belongs to.
  var group: String?
  var state: State
  /// Written by SQL and journalled by triggers. Only such entries may collapse into one another.
  var isCaptured: Bool
  var attempts: Int
  /// Of a write that was refused here: the columns whose text is not UTF-8, which `columns` shows in hexadecimal.
  var malformed: [String] = []

  /// The name of `malformed` in the journal of refused writes. It is never sent.
  static let malformedKey = "not_utf8"

  /// About what it takes in a request, in bytes.
  var size: Int {
    [columns, transforms ?? "", precondition ?? "", pk, table, hlc ?? ""].reduce(120) { $0 + $1.utf8.count }
  }

  /// Captured, ungrouped and never sent.
  var isLoose: Bool { state == .queued && isCaptured && group == nil }

  static let selection =
    "SELECT seq, mutation_id, tbl, pk, op, columns, transforms, precondition, hlc, grp, state, captured, attempts "
    + "FROM _kizunasync_outbox"

  init(_ row: Statement) throws {
    guard let op = KizunaSyncOp(rawValue: row.string(4)), let state = State(rawValue: row.int64(10)) else {
      throw KizunaSyncError(.store, "the outbox holds an entry of an unknown form; was it written by another program?")
    }
    seq = row.int64(0)
    mutationID = row.string(1)
    table = row.string(2)
    pk = row.string(3)
    self.op = op
    columns = row.string(5)
    transforms = row.optionalString(6)
    precondition = row.optionalString(7)
    hlc = row.optionalString(8)
    group = row.optionalString(9)
    self.state = state
    isCaptured = row.int(11) != 0
    attempts = row.int(12)
  }

  init(
    seq: Int64, mutationID: String = "", table: String = "", pk: String = "", op: KizunaSyncOp, columns: String = "{}",
    transforms: String? = nil, group: String? = nil, state: State = .queued, isCaptured: Bool = false
  ) {
    self.seq = seq
    self.mutationID = mutationID
    self.table = table
    self.pk = pk
    self.op = op
    self.columns = columns
    self.transforms = transforms
    self.group = group
    self.state = state
    self.isCaptured = isCaptured
    attempts = 0
  }

  /// The mutation as the wire spells it (Kizuna wire contract §5.1). Unset members are left out.
  func write(to writer: inout JSONWriter) {
    writer.raw("{\"columns\":")
    writer.raw(columns)
    if let hlc {
      writer.raw(",\"hlc\":")
      writer.write(string: hlc)
    }
    writer.raw(",\"mutation_id\":")
    writer.write(string: mutationID)
    writer.raw(",\"op\":\"\(op.rawValue)\",\"pk\":")
    writer.write(string: pk)
    if let precondition {
      writer.raw(",\"precondition\":")
      writer.raw(precondition)
    }
    writer.raw(",\"table\":")
    writer.write(string: table)
    if let transforms {
      writer.raw(",\"transforms\":")
      writer.raw(transforms)
    }
    if !malformed.isEmpty {
      writer.raw(",\"\(Self.malformedKey)\":")
      writer.raw(JSONWriter.text(.array(malformed.map(JSONValue.string))))
    }
    writer.raw("}")
  }

  static func write(_ entries: [OutboxEntry], to writer: inout JSONWriter) {
    writer.raw("[")
    for (index, entry) in entries.enumerated() {
      if index > 0 { writer.raw(",") }
      entry.write(to: &writer)
    }
    writer.raw("]")
  }
}
