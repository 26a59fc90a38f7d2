import HostKit
import KizunaSync

/// What a look at the database file means.
enum DatabaseVerdict {
  /// Bytes below which the next transactions fail, and below which somebody should look.
  static let fatalSpace: Int64 = 1 << 20
  static let scarceSpace: Int64 = 64 << 20

  static func findings(_ found: DatabaseExamination, path: String) -> [Finding] {
    [folder(found, path), database(found)] + contents(found, path) + [disk(found), lock(found)]
  }

  private static func folder(_ found: DatabaseExamination, _ path: String) -> Finding {
    guard let problem = found.accessProblem else {
      return .ok(.folder, "this user can read and write \(path) and its folder")
    }
    return .failed(
      .folder, .database, sentence: problem, otherwise: "correct the permissions, or name another path as \"database\"")
  }

  private static func database(_ found: DatabaseExamination) -> Finding {
    guard case .present(let bytes) = found.file else {
      return .ok(.database, "there is no database yet; the first run or sync makes it")
    }
    guard let problem = found.openingProblem else { return .ok(.database, "an SQLite database of \(size(bytes))") }
    return .failed(
      .database, .database, sentence: problem,
      otherwise: "restore a copy, or move the file away so that a new one is made")
  }

  private static func contents(_ found: DatabaseExamination, _ path: String) -> [Finding] {
    guard found.file != .missing, found.openingProblem == nil else {
      let reason = found.file == .missing ? "there is no database yet" : "the database cannot be opened"
      return [.integrity, .references, .format, .writeAheadLog].map { .skipped($0, reason) }
    }
    return [integrity(found, path), references(found), format(found), log(found)]
  }

  private static func integrity(_ found: DatabaseExamination, _ path: String) -> Finding {
    guard let first = found.damage.first else { return .ok(.integrity, "PRAGMA integrity_check finds nothing") }
    let more = found.damage.count > 1 ? ", and more" : ""
    return .failed(
      .integrity, .database, "the database is damaged: \(oneLine(first))\(more)",
      remedy:
        "end every program that uses \(path) and keep a copy of it; then restore a backup, or move it and its -wal "
        + "file away and let it be filled from the server again. Writes that were not sent are only in it; the sqlite3 "
        + "program's .recover may save them")
  }

  private static func oneLine(_ text: String) -> String {
    String(text.split(whereSeparator: \.isNewline).joined(separator: " ").prefix(200))
  }

  private static func references(_ found: DatabaseExamination) -> Finding {
    if !found.damage.isEmpty { return .skipped(.references, "the database is damaged") }
    guard !found.orphans.isEmpty else { return .ok(.references, "every foreign key finds its row") }
    let list = found.orphans.map { "\(ReplicaVerdict.rows($0.count)) of \($0.table) refer to \($0.parent)" }
    return .warning(
      .references, "rows refer to others that are not here: \(list.joined(separator: ", "))",
      remedy:
        "nothing, if the server does not show this user those rows; otherwise sync, and declare the table they are in"
    )
  }

  private static func format(_ found: DatabaseExamination) -> Finding {
    let known = DatabaseExamination.knownFormat
    switch found.format {
    case nil: return .skipped(.format, "the bookkeeping tables cannot be read")
    case .untouched?: return .ok(.format, "no replica yet; the first run or sync adds the bookkeeping tables")
    case .incomplete(let missing)?:
      return .warning(
        .format, "somebody dropped \(missing.joined(separator: ", "))",
        remedy: "sync, which makes them again and reads what is not known any more from the server")
    case .version(let version)? where version > known:
      return .failed(
        .format, .database, "the database was written by a newer release (format \(version), this one knows \(known))",
        remedy: "install that release")
    case .version(known)?: return .ok(.format, "format \(known), which is this release's")
    case .version(let version)?: return .ok(.format, "format \(version), an older one; the next run migrates it")
    }
  }

  private static func log(_ found: DatabaseExamination) -> Finding {
    guard let mode = found.journalMode else { return .skipped(.writeAheadLog, "the journal mode is not known") }
    if mode == "wal" { return .ok(.writeAheadLog, "readers and the writer do not wait for each other") }
    if case .version? = found.format {
      return .warning(
        .writeAheadLog, "the journal mode is \(mode), so readers and writers wait for each other",
        remedy: "keep other programs from changing journal_mode; the next run or sync sets it to wal")
    }
    return .ok(.writeAheadLog, "the journal mode is \(mode); the first run or sync sets it to wal")
  }

  private static func disk(_ found: DatabaseExamination) -> Finding {
    guard let free = found.freeBytes else { return .skipped(.disk, "the system does not tell how much space is left") }
    let text = "\(size(free)) are free where the database is"
    if free < fatalSpace {
      return .failed(
        .disk, .database, text, remedy: "free some space; until then nothing can be written, and nothing is lost")
    }
    if free < scarceSpace {
      return .warning(.disk, text, remedy: "free some space before nothing can be written any more")
    }
    return .ok(.disk, text)
  }

  private static func lock(_ found: DatabaseExamination) -> Finding {
    guard let holder = found.holder else { return .ok(.lock, "nobody synchronises the database now") }
    let name = holder.processID.map { "process \($0)" } ?? "a process that has not written its id yet"
    return .ok(.lock, "\(name) synchronises the database; a second run is refused, plain SQL is not")
  }

  static func size(_ bytes: Int64) -> String {
    switch bytes {
    case ..<10_240: "\(bytes) bytes"
    case ..<(10 << 20): "\(bytes >> 10) KiB"
    case ..<(10 << 30): "\(bytes >> 20) MiB"
    default: "\(bytes >> 30) GiB"
    }
  }
}
