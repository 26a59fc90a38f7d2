import Glibc
import HostKit

/// What a close look at a database file found, each part on its own: one that cannot be had hides no other.
///
/// Looking takes no lock that a client or an app would wait for, and changes nothing.
package struct DatabaseExamination: Sendable, Hashable {
  package enum File: Sendable, Hashable {
    case missing
    case present(bytes: Int64)
  }

  /// The bookkeeping tables.
  package enum Format: Sendable, Hashable {
    /// There are none: a database nobody has synced yet.
    case untouched
    /// Somebody dropped these.
    case incomplete([String])
    case version(Int64)
  }

  /// Rows whose parents are not here.
  package struct Orphans: Sendable, Hashable {
    package var table: String
    package var parent: String
    package var count: Int

    package init(table: String, parent: String, count: Int) {
      (self.table, self.parent, self.count) = (table, parent, count)
    }
  }

  /// The format this release reads and writes.
  package static let knownFormat = Schema.version

  package var file: File
  /// Why a client cannot work with the path as it is: a sentence with the remedy.
  package var accessProblem: String?
  /// Bytes this user may still write to the disk; nil when the system does not tell.
  package var freeBytes: Int64?
  package var holder: KizunaSyncReplicaStatus.Holder?
  /// Why the file cannot be read as a database: a sentence with the remedy. Nothing below is known then.
  package var openingProblem: String?
  package var journalMode: String?
  /// What `PRAGMA integrity_check` complains of, the first of it; empty when the file is sound.
  package var damage: [String] = []
  package var orphans: [Orphans] = []
  package var format: Format?
  /// The signed-in user whose rows the file holds.
  package var owner: String?
  /// The durable pull cursor; nil before there is one.
  package var cursor: String?
  /// The rest of what the file tells; nil when it cannot be read.
  package var status: KizunaSyncReplicaStatus?

  package init(file: File) {
    self.file = file
  }

  /// Looks at one file. Blocks: a large file is read from one end to the other.
  package static func examine(databasePath path: String) -> DatabaseExamination {
    let files = DatabaseFiles(path)
    var status = stat()
    let isThere = stat(path, &status) == 0
    var found = DatabaseExamination(file: isThere ? .present(bytes: Int64(status.st_size)) : .missing)
    found.accessProblem = DatabaseFiles.problem(with: path)
    found.freeBytes = freeBytes(files.directory)
    found.holder = KizunaSyncReplicaStatus.holder(ofDatabase: path)
    guard isThere else { return found }
    if let problem = DatabaseFiles.problem(withFile: path) {
      found.openingProblem = problem
      return found
    }
    // Before SQLite has it open: closing a descriptor would drop its locks.
    let hasLog = isWriteAheadLogged(path)
    do {
      try StoreFailure.translating(path: path) {
        let database = try Database.observing(path)
        defer { database.close() }
        // SQLite opens the file of somebody else without its log, and then says "delete" of every file.
        found.journalMode = hasLog ? "wal" : try database.value("PRAGMA journal_mode")?.text
        found.damage = damage(database)
        if found.damage.isEmpty { try Schema.refuseStrangers(in: database) }
        found.readBookkeeping(database)
      }
    } catch {
      found.openingProblem = (error as? KizunaSyncError)?.message ?? "the database cannot be opened"
      return found
    }
    found.status = try? KizunaSyncReplicaStatus.read(databasePath: path)
    return found
  }

  /// What the file itself says: its format's versions for writing and reading, bytes 18 and 19 of the header, are 2 with a
  /// write-ahead log (SQLite's database file format, §1.3).
  private static func isWriteAheadLogged(_ path: String) -> Bool {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var versions: [UInt8] = [0, 0]
    return pread(descriptor, &versions, 2, 18) == 2 && versions == [2, 2]
  }

  private static func freeBytes(_ directory: String) -> Int64? {
    var system = statvfs()
    guard statvfs(directory, &system) == 0 else { return nil }
    return Int64(
      clamping: UInt64(system.f_bavail).multipliedReportingOverflow(by: UInt64(system.f_frsize)).partialValue)
  }

  /// SQLite names pages, indexes and tables here, never values.
  private static func damage(_ database: Database) -> [String] {
    do {
      let lines = try database.map("PRAGMA integrity_check(20)") { $0.string(0) }
      return lines == ["ok"] ? [] : lines
    } catch {
      return [(error as? SQLiteError)?.message ?? "it cannot be read to its end"]
    }
  }

  private mutating func readBookkeeping(_ database: Database) {
    guard damage.isEmpty else { return }
    var counts: [[String]: Int] = [:]
    try? database.forEachRow("PRAGMA foreign_key_check") { row in
      counts[[row.string(0), row.string(2)], default: 0] += 1
    }
    orphans = counts.map { Orphans(table: $0.key[0], parent: $0.key[1], count: $0.value) }
      .sorted { ($0.table, $0.parent) < ($1.table, $1.parent) }
    guard let missing = try? Schema.missing(in: database) else { return }
    if missing.count == Schema.Table.allCases.count {
      format = .untouched
      return
    }
    format =
      missing.isEmpty
      ? .version((try? database.meta(.version).integer) ?? 0) : .incomplete(missing.map(\.name))
    owner = (try? database.meta(.owner))?.text
    cursor = (try? database.meta(.cursor))?.text
  }
}
