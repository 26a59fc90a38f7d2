import HostKit

/// Writes the rows and tombstones of pages into the tables. Used inside one closing transaction.
final class PageApplier {
  private let replica: Replica
  /// Rows with entries may exist; nothing adds any while the transaction runs.
  private let mayBeDirty: Bool
  /// Rows that were refused may be waiting; what is written now replaces them.
  private var mayBeParked: Bool
  private var writer: RowWriter?
  /// Rows whose image changed and that must be settled.
  var dirtyRows: Set<Replica.RowID> = []
  /// What pages say of other tables is passed over.
  let tables: Set<String>

  init(_ replica: Replica, tables: Set<String>) throws {
    self.replica = replica
    self.tables = tables
    mayBeDirty = try replica.database.exists("SELECT 1 FROM _kizunasync_image LIMIT 1")
    mayBeParked = try replica.database.exists("SELECT 1 FROM _kizunasync_parked LIMIT 1")
  }

  /// Rows first, then tombstones.
  func apply(_ page: PullPage) throws {
    try page.forEachItem(applyRow, tombstones: applyTombstone)
  }

  /// Lets go of the last page's memory.
  func finish() {
    writer?.clear()
  }

  private func applyRow(_ item: PullPage.Item, _ bytes: UnsafeRawBufferPointer) throws {
    guard let range = item.row else { return try applyTombstone(item, bytes) }
    guard tables.contains(item.table) else { return }
    do {
      try apply(item, range, bytes)
    } catch let error as JSONSyntaxError {
      // The page has been read, so it is JSON; but no value can be made of this row.
      mayBeParked = true
      try replica.park(
        item.table, pk: item.key(in: bytes),
        rowText: String(decoding: UnsafeRawBufferPointer(rebasing: bytes[range]), as: UTF8.self),
        reason: "JSON of the server that cannot be taken apart here: \(error.reason)")
    }
  }

  private func apply(_ item: PullPage.Item, _ range: Range<Int>, _ bytes: UnsafeRawBufferPointer) throws {
    if mayBeDirty {
      let pk = try item.key(in: bytes)
      if try replica.hasEntries(item.table, pk: pk) {
        try replica.setImageFromServer(item.table, pk: pk, row(range, bytes), isPulled: true)
        dirtyRows.insert(Replica.RowID(table: item.table, pk: pk))
        return
      }
    }
    if try fastWriter(item.table).write(item, range, bytes) {
      if mayBeParked { try replica.unpark(item.table, pk: item.key(in: bytes)) }
      return
    }
    // Something is new: a column, a kind, or a value the table refuses.
    mayBeParked = true
    try replica.show(item.table, pk: item.key(in: bytes), row: row(range, bytes), firm: true)
    writer = nil
  }

  private func applyTombstone(_ item: PullPage.Item, _ bytes: UnsafeRawBufferPointer) throws {
    guard tables.contains(item.table) else { return }
    let pk = try item.key(in: bytes)
    if mayBeDirty, try replica.hasEntries(item.table, pk: pk) {
      try replica.setImageFromServer(item.table, pk: pk, nil, isPulled: true)
      dirtyRows.insert(Replica.RowID(table: item.table, pk: pk))
    } else {
      try replica.show(item.table, pk: pk, row: nil, firm: true)
    }
  }

  private func row(_ range: Range<Int>, _ bytes: UnsafeRawBufferPointer) throws -> RowMap? {
    var cursor = JSONCursor(bytes, at: range.lowerBound)
    return try cursor.readValue().objectValue
  }

  private func fastWriter(_ table: String) throws -> RowWriter {
    let layout = try replica.layout(table)
    // Compared by identity: a changed table has a new layout.
    if let writer, writer.layout === layout { return writer }
    writer?.clear()
    let fresh = try RowWriter(replica, layout: layout)
    writer = fresh
    return fresh
  }
}

/// Binds the cells of rows straight from the answer's bytes to one prepared statement: no object for a row or a cell.
final class RowWriter {
  let layout: TableLayout
  private let replica: Replica
  private let statement: Statement
  /// By position: the statement's parameter, 0 for columns that never travel.
  private let parameters: [Int32]
  /// By position: what the current row said.
  private var cells: [Cell]
  /// The member names of the last row in their order; the next row most likely has the same.
  private var order: [(name: String, position: Int)] = []
  /// Whether any row of the table has a record of absent cells.
  private var hasAbsentRecords: Bool
  private let isTextKey: Bool

  private enum Cell {
    case absent, null, value
  }

  /// The position of columns the table does not take.
  private static let ignored = -1

  init(_ replica: Replica, layout: TableLayout) throws {
    self.replica = replica
    self.layout = layout
    statement = try replica.database.statement(layout.upsert)
    var parameters = [Int32](repeating: 0, count: layout.columns.count)
    for (index, position) in layout.syncedPositions.enumerated() { parameters[position] = Int32(index + 1) }
    self.parameters = parameters
    cells = Array(repeating: .absent, count: layout.columns.count)
    hasAbsentRecords = try replica.database.exists(
      "SELECT 1 FROM _kizunasync_absent WHERE tbl = ? LIMIT 1", .text(layout.name))
    isTextKey = layout.keyPositions.count == 1 && !layout.columns[layout.keyPositions[0]].storesIntegers
  }

  func clear() {
    statement.clear()
  }

  /// - Returns: false when the row needs the long way; nothing is written then.
  func write(_ item: PullPage.Item, _ range: Range<Int>, _ bytes: UnsafeRawBufferPointer) throws -> Bool {
    // Whether anything was written is for the long way to find out.
    guard !layout.hasAppTriggers else { return false }
    for position in cells.indices { cells[position] = .absent }
    var isPlain = true
    var member = 0
    var cursor = JSONCursor(bytes, at: range.lowerBound)
    try cursor.forEachMember { name, value in
      guard isPlain, let position = position(of: name, member: member) else {
        isPlain = false
        try value.skipValue()
        return
      }
      member += 1
      if position == Self.ignored || parameters[position] == 0 || layout.columns[position].isKey {
        // Key columns come from the key text.
        try value.skipValue()
      } else {
        isPlain = try bind(&value, position, bytes)
      }
    }
    guard isPlain else { return false }
    for position in layout.syncedPositions where cells[position] == .absent {
      statement.bindNull(at: parameters[position])
    }
    guard try bindKey(item, bytes) else { return false }
    do {
      try statement.run()
    } catch let error as SQLiteError {
      if replica.isRefusal(error) { return false }
      throw replica.judged(error, layout.name)
    }
    try noteAbsent(item, bytes)
    return true
  }

  /// - Returns: nil for a column the layout does not know.
  private func position(of name: String, member: Int) -> Int? {
    if member < order.count, order[member].name == name { return order[member].position }
    let position: Int
    if let known = layout.positions[name] {
      position = known
    } else if replica.ignoredColumns.contains("\(layout.name).\(name)") {
      position = Self.ignored
    } else {
      return nil
    }
    if member < order.count {
      order[member] = (name, position)
    } else {
      order.append((name, position))
    }
    return position
  }

  /// - Returns: false when the value does not fit what is known of the column.
  private func bind(_ value: inout JSONCursor, _ position: Int, _ bytes: UnsafeRawBufferPointer) throws -> Bool {
    let column = layout.columns[position]
    let parameter = parameters[position]
    guard let first = value.peek() else { return false }
    if first == UInt8(ascii: "n") {
      try value.skipValue()
      statement.bindNull(at: parameter)
      cells[position] = .null
      return true
    }
    guard let kind = column.kind, column.isFirm else {
      try value.skipValue()
      return false
    }
    cells[position] = .value
    if kind == .json {
      statement.bind(borrowedText: UnsafeRawBufferPointer(rebasing: bytes[try value.skipValue()]), at: parameter)
      return true
    }
    switch first {
    case UInt8(ascii: "\""):
      guard kind != .boolean else {
        try value.skipValue()
        return false
      }
      return try bindText(&value, column, parameter, bytes)
    case UInt8(ascii: "t"), UInt8(ascii: "f"):
      try value.skipValue()
      statement.bind(integer: first == UInt8(ascii: "t") ? 1 : 0, at: parameter)
      return kind == .boolean
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      try value.skipValue()
      return false
    default:
      return try bindNumber(&value, column, kind, parameter, bytes) && kind != .boolean
    }
  }

  /// - Returns: false when the column would make another text or a number of it.
  private func bindText(
    _ value: inout JSONCursor, _ column: TableLayout.Column, _ parameter: Int32, _ bytes: UnsafeRawBufferPointer
  ) throws -> Bool {
    _ = value.peek()
    let start = value.offset
    var ahead = value
    guard try ahead.skipString() else {
      let text = try value.readString()
      statement.bind(text: text, at: parameter)
      return column.declared.keeps(text: text)
    }
    value = ahead
    let text = UnsafeRawBufferPointer(rebasing: bytes[(start + 1)..<(value.offset - 1)])
    statement.bind(borrowedText: text, at: parameter)
    switch column.declared {
    case .none, .text: return true
    case .integer, .real, .numeric: return column.declared.keeps(text: String(decoding: text, as: UTF8.self))
    }
  }

  /// - Returns: false when the column would change the number.
  private func bindNumber(
    _ value: inout JSONCursor, _ column: TableLayout.Column, _ kind: ColumnKind, _ parameter: Int32,
    _ bytes: UnsafeRawBufferPointer
  ) throws -> Bool {
    let range = try value.scanNumber()
    if kind != .numeric, column.declared != .real, let integer = Self.integer(bytes, range) {
      statement.bind(integer: integer, at: parameter)
      return true
    }
    guard let number = JSONNumber(lexeme: String(decoding: bytes[range], as: UTF8.self)) else { return true }
    let cell = CellCodec.encode(number, kind: kind)
    statement.bind(cell, at: parameter)
    return column.declared.keeps(cell)
  }

  /// Up to 18 digits without looking twice; the rest takes the long way.
  private static func integer(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int64? {
    let isNegative = bytes[range.lowerBound] == UInt8(ascii: "-")
    let digits = isNegative ? range.dropFirst() : range
    guard digits.count <= 18 else { return nil }
    var value: Int64 = 0
    for index in digits {
      let digit = bytes[index] &- UInt8(ascii: "0")
      guard digit <= 9 else { return nil }
      value = value * 10 + Int64(digit)
    }
    return isNegative ? (value == 0 ? nil : -value) : value
  }

  /// - Returns: false for a key that the table cannot hold.
  private func bindKey(_ item: PullPage.Item, _ bytes: UnsafeRawBufferPointer) throws -> Bool {
    if isTextKey, item.isPlainKey {
      let text = UnsafeRawBufferPointer(rebasing: bytes[(item.pk.lowerBound + 1)..<(item.pk.upperBound - 1)])
      statement.bind(borrowedText: text, at: parameters[layout.keyPositions[0]])
      return true
    }
    let cells = try layout.keyCells(item.key(in: bytes))
    for (position, cell) in zip(layout.keyPositions, cells) { statement.bind(cell, at: parameters[position]) }
    return layout.reasonAgainst(cells) == nil
  }

  private func noteAbsent(_ item: PullPage.Item, _ bytes: UnsafeRawBufferPointer) throws {
    var listed: [String] = []
    for position in layout.syncedPositions {
      let column = layout.columns[position]
      guard !column.isKey else { continue }
      switch cells[position] {
      case .absent where !column.isLate, .null where column.isLate: listed.append(column.name)
      default: break
      }
    }
    guard hasAbsentRecords || !listed.isEmpty else { return }
    hasAbsentRecords = true
    try replica.noteAbsent(layout.name, pk: item.key(in: bytes), columns: listed)
  }
}
