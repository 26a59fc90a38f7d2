import HostKit

/// The bookkeeping tables. All carry the prefix `_kizunasync_`, so that they live beside an app's own tables.
///
/// | table | holds |
/// |---|---|
/// | `ctl` | `applying` = 1 only inside a transaction of the gateway, which silences the capture triggers; the generation that dates requests in flight |
/// | `meta` | single values, see `MetaKey` |
/// | `tables` | which tables are synced and who made them |
/// | `kinds` | the columns of each table: kind, and the slot its values take in `capture` |
/// | `capture` | every local change of any process in native values, filled by triggers, emptied by the harvest; its newest row stays, so that no sequence number is used twice; numbers below zero are of tables that are not configured, see `Replica.hold`; rows without a table tell where a group begins; `at` is milliseconds since 1970, from triggers a Julian day |
/// | `displaced` | rows that a statement may displace, between a BEFORE and an AFTER trigger, and the marks of `Mark` |
/// | `group` | a row while a transaction is all-or-nothing on the server |
/// | `outbox` | mutations in the order they are sent; state 0 queued, 1 sent, 2 acknowledged |
/// | `pushed` | the newest ids that were applied |
/// | `image` | what the server last sent for a row that has entries in the outbox |
/// | `pages` | answers of an unfinished transfer |
/// | `absent` | cells that are absent rather than null (or the other way round in a late column) |
/// | `parked` | rows of the server that a constraint of this database refuses |
/// | `rejections`, `overwrites` | the two journals |
enum Schema {
  static let prefix = "_kizunasync_"
  /// What a release of another format would misunderstand is migrated, see `migrate`, or refused.
  static let version: Int64 = 3

  /// Rows of `displaced` that belong to no table: while one is there, no write is a usual one. The number is their
  /// `base_seq`.
  enum Mark: Int64 {
    /// `ctl.applying` is 1.
    case applying = -1
    /// A transaction is all-or-nothing on the server.
    case group = -2
  }

  /// Tell the capture triggers of an open group, and the harvest where it begins. In files of an earlier release they may be
  /// missing, or tell less.
  static let groupTriggers = """
    CREATE TRIGGER IF NOT EXISTS _kizunasync_group_opens AFTER INSERT ON _kizunasync_group
      BEGIN
        INSERT INTO _kizunasync_displaced(base_seq) VALUES (\(Mark.group.rawValue));
        INSERT INTO _kizunasync_capture(tbl, op, grp, at) VALUES ('', '\(GroupMark.op)', NEW.id, julianday());
      END;
    CREATE TRIGGER IF NOT EXISTS _kizunasync_group_ends AFTER DELETE ON _kizunasync_group
      BEGIN DELETE FROM _kizunasync_displaced WHERE base_seq = \(Mark.group.rawValue); END;
    """

  /// So that what was acknowledged, which stays until the next checkpoint, is not gone through for each request of a long
  /// queue.
  static let waitingIndex =
    "CREATE INDEX IF NOT EXISTS _kizunasync_outbox_waiting ON _kizunasync_outbox(seq) WHERE state < 2;"

  enum Table: String, CaseIterable {
    case ctl, meta, tables, kinds, capture, displaced, group, outbox, pushed, image, pages, absent, parked, rejections,
      overwrites

    var name: String { prefix + rawValue }

    var script: String {
      switch self {
      case .ctl:
        """
        CREATE TABLE _kizunasync_ctl(
          id INTEGER PRIMARY KEY CHECK (id = 1), applying INTEGER NOT NULL, generation INTEGER NOT NULL);
        INSERT INTO _kizunasync_ctl VALUES (1, 0, 0);
        """
      case .meta: "CREATE TABLE _kizunasync_meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
      case .tables:
        """
        CREATE TABLE _kizunasync_tables(name TEXT PRIMARY KEY, managed INTEGER NOT NULL, slots INTEGER NOT NULL)
          WITHOUT ROWID;
        """
      case .kinds:
        """
        CREATE TABLE _kizunasync_kinds(
          tbl TEXT NOT NULL, col TEXT NOT NULL, slot INTEGER NOT NULL, kind TEXT, firm INTEGER NOT NULL DEFAULT 0,
          late INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (tbl, col)) WITHOUT ROWID;
        """
      case .capture: "CREATE TABLE _kizunasync_capture(seq INTEGER PRIMARY KEY, tbl, op, grp, at);"
      case .displaced: "CREATE TABLE _kizunasync_displaced(base_seq, tbl);"
      case .group: "CREATE TABLE _kizunasync_group(id);\n" + Schema.groupTriggers
      case .outbox:
        """
        CREATE TABLE _kizunasync_outbox(
          seq INTEGER PRIMARY KEY AUTOINCREMENT, mutation_id TEXT NOT NULL UNIQUE, tbl TEXT NOT NULL, pk TEXT NOT NULL,
          op TEXT NOT NULL, columns TEXT NOT NULL, transforms TEXT, precondition TEXT, hlc TEXT, grp,
          state INTEGER NOT NULL DEFAULT 0, captured INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, error TEXT,
          at INTEGER NOT NULL);
        CREATE INDEX _kizunasync_outbox_key ON _kizunasync_outbox(tbl, pk);
        """ + Schema.waitingIndex
      case .pushed: "CREATE TABLE _kizunasync_pushed(n INTEGER PRIMARY KEY, mutation_id TEXT NOT NULL UNIQUE);"
      case .image:
        """
        CREATE TABLE _kizunasync_image(tbl TEXT NOT NULL, pk TEXT NOT NULL, row TEXT, tomb_seq INTEGER,
          PRIMARY KEY (tbl, pk)) WITHOUT ROWID;
        """
      case .pages: "CREATE TABLE _kizunasync_pages(n INTEGER PRIMARY KEY, body BLOB NOT NULL);"
      case .absent:
        """
        CREATE TABLE _kizunasync_absent(tbl TEXT NOT NULL, pk TEXT NOT NULL, cols TEXT NOT NULL,
          PRIMARY KEY (tbl, pk)) WITHOUT ROWID;
        """
      case .parked:
        """
        CREATE TABLE _kizunasync_parked(tbl TEXT NOT NULL, pk TEXT NOT NULL, row TEXT NOT NULL, error TEXT NOT NULL,
          PRIMARY KEY (tbl, pk)) WITHOUT ROWID;
        """
      case .rejections:
        """
        CREATE TABLE _kizunasync_rejections(
          n INTEGER PRIMARY KEY, mutation_id TEXT NOT NULL UNIQUE, tbl TEXT NOT NULL, pk TEXT NOT NULL,
          kind TEXT NOT NULL, reason TEXT NOT NULL, members TEXT NOT NULL, server_row TEXT, at INTEGER NOT NULL,
          dismissed INTEGER NOT NULL DEFAULT 0);
        """
      case .overwrites:
        """
        CREATE TABLE _kizunasync_overwrites(
          id INTEGER PRIMARY KEY AUTOINCREMENT, tbl TEXT NOT NULL, pk TEXT NOT NULL, col TEXT NOT NULL,
          winner TEXT NOT NULL, winner_seq TEXT NOT NULL, mode TEXT NOT NULL, loser TEXT NOT NULL, at INTEGER NOT NULL,
          dismissed INTEGER NOT NULL DEFAULT 0, UNIQUE (tbl, pk, col, winner, winner_seq));
        """
      }
    }
  }

  static let script = Table.allCases.map(\.script).joined(separator: "\n")

  /// Makes the bookkeeping tables if the file has none.
  /// - Throws: `STORE_UNAVAILABLE` for a file that a newer release wrote.
  static func prepare(_ database: Database) throws {
    try refuseStrangers(in: database)
    let missing = try missing(in: database)
    if missing.count < Table.allCases.count {
      // What else is missing is made again with the synced tables.
      if missing.contains(.meta) { return }
      let found = try database.meta(.version).integer ?? 0
      guard found <= version else {
        throw KizunaSyncError(
          .storeUnavailable,
          "the database was written by a newer release (format \(found), this one knows \(version)); install that release"
        )
      }
      if found < version { try database.transaction { try migrate(database, from: found, lacking: missing) } }
      return
    }
    try database.transaction {
      if try exists(in: database) { return }
      try database.execute(script)
      try database.setMeta(.version, .integer(version))
    }
  }

  /// Whether the file is a replica, even one somebody took tables from.
  static func exists(in database: Database) throws -> Bool {
    try missing(in: database).count < Table.allCases.count
  }

  /// Looks for what somebody else called as the bookkeeping tables are called.
  /// - Throws: `STORE_UNAVAILABLE` naming it.
  static func refuseStrangers(in database: Database) throws {
    let found = try database.map(
      "SELECT type, name FROM sqlite_schema WHERE lower(substr(name, 1, 12)) = ? AND type <> 'trigger'", [.text(prefix)]
    ) { (type: $0.string(0), name: $0.string(1)) }
    guard !found.isEmpty else { return }
    let ours = try Database(DatabaseConfiguration(path: nil, role: .writer))
    defer { ours.close() }
    try ours.execute(script)
    for (type, name) in found {
      guard let table = Table.allCases.first(where: { $0.name == name.lowercased() }) else { continue }
      var what = "is of the type \(type)"
      if type == "table", name != table.name {
        what = "is spelled otherwise"
      } else if type == "table" {
        let present = Set(try columns(of: name, in: database))
        // The journal has more of them than the script makes.
        guard let lacking = try columns(of: table.name, in: ours).first(where: { !present.contains($0) }) else {
          continue
        }
        what = "has no column \(lacking)"
      }
      throw KizunaSyncError(
        .storeUnavailable,
        "\(name) in the database is not the table that the sync keeps under this name (it \(what)); rename or drop it, "
          + "or name another database file: names that begin with \(prefix) are the sync's own")
    }
  }

  /// The columns a bookkeeping table is made with.
  static func declaredColumns(of table: Table) throws -> [String] {
    let database = try Database(DatabaseConfiguration(path: nil, role: .writer))
    defer { database.close() }
    try database.execute(table.script)
    return try columns(of: table.name, in: database)
  }

  private static func columns(of table: String, in database: Database) throws -> [String] {
    try database.map("SELECT name FROM pragma_table_info(?)", [.text(table)]) { $0.string(0) }
  }

  /// The bookkeeping tables the file lacks.
  static func missing(in database: Database) throws -> [Table] {
    let present = Set(
      try database.map(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 12) = ?", [.text(prefix)]
      ) { $0.string(0) })
    return Table.allCases.filter { !present.contains($0.name) }
  }
}
