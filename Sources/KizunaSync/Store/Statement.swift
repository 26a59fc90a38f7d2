import CSQLite

/// A prepared statement. Bind, step, read, reset; finalized when the last reference goes, which is mostly the cache's.
///
/// Confined to the thread of its connection, like everything in this folder.
final class Statement {
  let sql: String
  private let handle: OpaquePointer
  private unowned let database: Database

  init(_ database: Database, handle: OpaquePointer, sql: String) {
    self.database = database
    self.handle = handle
    self.sql = sql
  }

  deinit {
    sqlite3_finalize(handle)
  }

  /// Stepped and not yet reset, so not to be used by somebody else.
  var isBusy: Bool { sqlite3_stmt_busy(handle) != 0 }

  // MARK: Binding (indexes start at 1)

  func bind(_ value: SQLiteValue, at index: Int32) {
    switch value {
    case .null: sqlite3_bind_null(handle, index)
    case .integer(let value): sqlite3_bind_int64(handle, index, value)
    case .real(let value): sqlite3_bind_double(handle, index, value)
    case .text(let value): bind(text: value, at: index)
    case .malformed(let value): value.withUnsafeBytes { bind(copying: $0, at: index) }
    case .blob(let value): bind(blob: value, at: index)
    }
  }

  func bind(integer value: Int64, at index: Int32) { sqlite3_bind_int64(handle, index, value) }
  func bind(real value: Double, at index: Int32) { sqlite3_bind_double(handle, index, value) }
  func bindNull(at index: Int32) { sqlite3_bind_null(handle, index) }

  func bind(text value: String, at index: Int32) {
    var value = value
    value.withUTF8 { bind(copying: UnsafeRawBufferPointer($0), at: index) }
  }

  private func bind(copying bytes: UnsafeRawBufferPointer, at index: Int32) {
    // An empty buffer has no address, which SQLite would take for NULL.
    let text = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
    _ = kd_sqlite_bind_text_copied(handle, index, text ?? Self.empty, Int32(bytes.count))
  }

  func bind(blob value: [UInt8], at index: Int32) {
    value.withUnsafeBytes { bytes in
      // An empty buffer has no address, which SQLite would take for NULL.
      _ = kd_sqlite_bind_blob_copied(
        handle, index, bytes.baseAddress ?? UnsafeRawPointer(Self.empty), Int32(bytes.count))
    }
  }

  /// Binds text without copying it: the bytes must stay in place until the statement is reset.
  func bind(borrowedText bytes: UnsafeRawBufferPointer, at index: Int32) {
    let text = bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
    _ = kd_sqlite_bind_text_borrowed(handle, index, text ?? Self.empty, Int32(bytes.count))
  }

  func bind(_ values: some Sequence<SQLiteValue>) {
    var index: Int32 = 1
    for value in values {
      bind(value, at: index)
      index += 1
    }
  }

  // A static C string: `StaticString` storage lives as long as the program.
  private static var empty: UnsafePointer<CChar> {
    UnsafeRawPointer(("" as StaticString).utf8Start).assumingMemoryBound(to: CChar.self)
  }

  // MARK: Running

  /// Advances to the next row; false at the end.
  func step() throws -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default:
      let error = database.lastError(sql)
      sqlite3_reset(handle)
      throw error
    }
  }

  /// Makes the statement ready for another run. Arguments stay bound.
  func reset() {
    sqlite3_reset(handle)
  }

  /// Runs to the end and resets.
  func run() throws {
    while try step() {}
    reset()
  }

  /// Forgets the arguments, so that no borrowed memory stays referenced.
  func clear() {
    sqlite3_reset(handle)
    sqlite3_clear_bindings(handle)
  }

  // MARK: Reading (indexes start at 0)

  var columnCount: Int32 { sqlite3_column_count(handle) }

  func columnName(_ index: Int32) -> String {
    sqlite3_column_name(handle, index).map { String(cString: $0) } ?? ""
  }

  func value(_ index: Int32) -> SQLiteValue {
    switch sqlite3_column_type(handle, index) {
    case SQLITE_INTEGER: .integer(sqlite3_column_int64(handle, index))
    case SQLITE_FLOAT: .real(sqlite3_column_double(handle, index))
    case SQLITE_TEXT: text(index)
    case SQLITE_BLOB: .blob(withBlob(index) { Array($0) })
    default: .null
    }
  }

  private func text(_ index: Int32) -> SQLiteValue {
    withText(index) { bytes in
      String(validating: bytes, as: UTF8.self).map(SQLiteValue.text) ?? .malformed(Array(bytes))
    }
  }

  func isNull(_ index: Int32) -> Bool { sqlite3_column_type(handle, index) == SQLITE_NULL }
  func int64(_ index: Int32) -> Int64 { sqlite3_column_int64(handle, index) }
  func int(_ index: Int32) -> Int { Int(sqlite3_column_int64(handle, index)) }

  /// The text of a cell, empty for NULL. For texts of our own: bytes that are not UTF-8 are replaced.
  func string(_ index: Int32) -> String {
    withText(index) { String(decoding: $0, as: UTF8.self) }
  }

  private func withText<Result>(_ index: Int32, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    let text = sqlite3_column_text(handle, index)
    // The length is that of the text only after the text was asked for.
    return body(UnsafeBufferPointer(start: text, count: text == nil ? 0 : Int(sqlite3_column_bytes(handle, index))))
  }

  func optionalString(_ index: Int32) -> String? { isNull(index) ? nil : string(index) }

  /// The bytes of a blob or text cell, valid inside `body` only.
  func withBlob<Result>(_ index: Int32, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    let start = sqlite3_column_blob(handle, index)
    let count = Int(sqlite3_column_bytes(handle, index))
    return try body(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count))
  }

  /// All cells of the current row.
  func row() -> [SQLiteValue] {
    (0..<columnCount).map(value)
  }
}
