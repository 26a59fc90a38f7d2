import HostKit

/// What can be said about a configuration before anything is opened. All that is wrong is told at once.
enum ConfigurationCheck {
  static let mostTables = 64

  /// - Throws: `CONFIG_INVALID`, or `ATTACHMENT_PORTS_MISSING`.
  static func check(_ config: KizunaSyncClientConfig) throws {
    let faults = faults(config)
    guard faults.isEmpty else { throw KizunaSyncError(.configInvalid, faults.joined(separator: "; ")) }
    if config.declaresAttachments, config.attachmentRoot?.isEmpty ?? true {
      throw KizunaSyncError(
        .attachmentPortsMissing, "tables declare attachments, so attachmentRoot must name a directory for them")
    }
  }

  private static func faults(_ config: KizunaSyncClientConfig) -> [String] {
    var faults: [String] = []
    if !RandomUUID.isWellFormed(config.clientId) { faults.append("clientId must be a uuid") }
    if config.schemaVersion < 1 { faults.append("schemaVersion must be 1 or more") }
    if config.databasePath?.isEmpty == true { faults.append("databasePath must not be empty") }
    if config.databasePath?.utf8.contains(0) == true { faults.append("databasePath must not hold a NUL character") }
    if let limit = config.defaultLimit, limit < 1 { faults.append("defaultLimit must be 1 or more") }
    if let attempts = config.attachmentAttempts, attempts < 1 { faults.append("attachmentAttempts must be 1 or more") }
    if config.tables.count > mostTables {
      faults.append("\(config.tables.count) tables are configured; one request can ask for \(mostTables)")
    }
    for (name, table) in config.tables.sorted(by: { JSONWriter.bytewise($0.key, $1.key) }) {
      faults += self.faults(name, table)
    }
    if let remote = config.remote { faults += self.faults(remote) }
    return faults
  }

  private static func faults(_ remote: KizunaSyncRemoteConfig) -> [String] {
    var faults: [String] = []
    do {
      _ = try ServerURL(remote.url)
    } catch {
      faults.append("remote.url: \(error.message)")
    }
    if remote.schema?.isEmpty == true { faults.append("remote.schema must not be empty") }
    return faults
  }

  private static func faults(_ name: String, _ table: KizunaSyncTableConfig) -> [String] {
    var faults: [String] = []
    if !isName(name) {
      faults.append("the table name \"\(name)\" must be lower-case letters, digits and _, beginning with a letter")
    } else if TableDeclaration.isReserved(name) {
      faults.append("the table name \"\(name)\" is reserved by SQLite")
    }
    if table.key.isEmpty { faults.append("\(name): key must name the primary key's columns") }
    if Set(table.key).count != table.key.count { faults.append("\(name): key names a column twice") }
    for column in table.key where !isName(column) { faults.append("\(name): \"\(column)\" in key is no column name") }
    switch table.bucket {
    case .none: break
    case .byOwner(let column):
      if column.isEmpty || column == "id" {
        faults.append("\(name): bucket_owner must name the column of the owner's id, not \"\(column)\"")
      }
    case .byColumn(let column):
      if column.isEmpty { faults.append("\(name): bucket_column must name a column") }
    }
    if let column = table.softDeleteColumn, column.isEmpty || table.key.contains(column) {
      faults.append("\(name): softDeleteColumn must name a column outside the key")
    }
    return faults
  }

  /// The grammar of table and column names (Kizuna wire contract §3).
  private static func isName(_ text: String) -> Bool {
    guard let first = text.utf8.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first) else { return false }
    return text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
      default: false
      }
    }
  }
}
