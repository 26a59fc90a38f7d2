import HostKit

/// The server half of Kizuna row sync for a PostgreSQL of one's own, such as a Supabase project that nobody else has
/// prepared: a schema `kizunasync` with the functions `pull` and `push` of the wire contract, in SQL.
///
/// ``ProvisionPlan`` adds the tables.
public enum ServerPack {
  /// Makes the schema, or brings it up to date; applied again it changes nothing. For PostgreSQL 15 and later, run in one
  /// transaction by the role that owns the synced tables, which needs `CREATEROLE` but no superuser.
  public static let migration = String(decoding: PackageResources.migration_sql, as: UTF8.self)

  /// Removes everything ``migration`` and the provisioning of tables have made. The app's tables stay.
  public static let deprovision = String(decoding: PackageResources.deprovision_sql, as: UTF8.self)

  /// Differs from release to release of the pack; the database remembers which one it has.
  public static let fingerprint = Fingerprint.of(migration)
}
