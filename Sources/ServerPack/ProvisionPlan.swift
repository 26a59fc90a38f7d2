import HostKit

/// SQL that prepares a database for a set of synced tables, and SQL that tells in what a database differs from that.
///
/// Both are scripts for `psql`; the first is plain SQL, for any client.
public struct ProvisionPlan: Sendable, Hashable {
  public let tables: [String: TableDeclaration]

  public init(tables: [String: TableDeclaration]) {
    self.tables = tables
  }

  /// The pack and the tables, in one transaction. Its result rows say what was done for each table. When a table cannot
  /// be synced it fails with SQLSTATE ``refusal`` and one line for every reason, and nothing is changed.
  public var script: String {
    """
    begin isolation level read committed;

    \(ServerPack.migration)
    -- ── Tables of this configuration ───────────────────────────────────────────────────────────────────────────────────
    do $$ begin perform kizunasync.record_installation(\(Self.literal(ServerPack.fingerprint))); end $$;
    select kizunasync.provision(\(declarations)) as provisioned;

    commit;

    """
  }

  /// Prints one line for every difference, and none when the database is as ``script`` leaves it. Changes nothing.
  public var check: String {
    """
    begin read only;
    select to_regprocedure('kizunasync.drift(jsonb, text)') is not null as is_installed \\gset
    \\if :is_installed
    select kizunasync.drift(\(declarations), \(Self.literal(ServerPack.fingerprint)));
    \\else
    \\echo the server pack is not installed, or of another release; provision
    \\endif
    commit;

    """
  }

  /// SQLSTATE of a refusal.
  public static let refusal = "KZPRV"

  private var declarations: String {
    let list = tables.sorted { $0.key < $1.key }.map { name, table -> JSONValue in
      [
        "table": .string(name), "key": .array(table.key.map(JSONValue.string)),
        "bucket": table.bucketColumn.map(JSONValue.string) ?? .null,
        "sync_mode": .string(table.syncMode.rawValue), "conflict_mode": .string(table.conflictMode.rawValue),
        "columns": .array(table.namedColumns.sorted().map(JSONValue.string)),
      ]
    }
    return Self.literal(JSONWriter.text(.array(list))) + "::jsonb"
  }

  /// A text as SQL, whatever is in it and however the server reads backslashes.
  static func literal(_ text: String) -> String {
    var quoted = text.contains("\\") ? " E'" : "'"
    for scalar in text.unicodeScalars {
      if scalar == "'" || scalar == "\\" && quoted.hasPrefix(" E") { quoted.unicodeScalars.append(scalar) }
      quoted.unicodeScalars.append(scalar)
    }
    return quoted + "'"
  }
}

extension TableDeclaration {
  /// The column whose value tells a row's bucket; nil for a table that is synced whole.
  var bucketColumn: String? {
    switch bucket {
    case .wholeTable: nil
    case .owner(let column), .column(let column, _): column
    }
  }
}
