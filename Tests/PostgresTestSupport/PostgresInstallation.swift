import Glibc

/// The PostgreSQL programs of this machine.
public struct PostgresInstallation: Sendable, Hashable {
  /// The folder with `initdb`, `postgres` and `psql`.
  public let programs: String

  /// The one in the folder that `KIZUNA_POSTGRES` names, or the newest one from 15 on where Debian's packages put it; nil
  /// when there is none.
  public static let newest: PostgresInstallation? = {
    if let programs = getenv("KIZUNA_POSTGRES").map({ String(cString: $0) }) {
      return PostgresInstallation(programs: programs)
    }
    let root = "/usr/lib/postgresql"
    guard let directory = opendir(root) else { return nil }
    defer { closedir(directory) }
    var found: [(version: Int, installation: PostgresInstallation)] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard let version = Int(name), version >= 15 else { continue }
      let programs = "\(root)/\(name)/bin"
      if access(programs + "/initdb", X_OK) == 0, access(programs + "/psql", X_OK) == 0 {
        found.append((version, PostgresInstallation(programs: programs)))
      }
    }
    return found.max { $0.version < $1.version }?.installation
  }()

  public static var isPresent: Bool { newest != nil }

  /// Why a test is skipped.
  public static let absence: String = "PostgreSQL 15 or later is not installed (Debian: apt-get install postgresql)"
}
