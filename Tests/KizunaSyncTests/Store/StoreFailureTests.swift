import CSQLite
import Foundation
import Testing

@testable import KizunaSync

@Suite struct StoreFailureTests {
  private func failure(opening path: String) -> KizunaSyncError? {
    #expect(throws: KizunaSyncError.self) {
      _ = try StoreFailure.translating(path: path) {
        try Database(DatabaseConfiguration(path: path, role: .writer))
      }
    }
  }

  @Test func aFileThatIsNoDatabaseIsNamed() throws {
    try withScratchFolder { folder in
      let path = folder + "/letter.txt"
      try Data("Dear reader, this is not a database at all, whatever its length may suggest.".utf8)
        .write(to: URL(fileURLWithPath: path))
      let error = failure(opening: path)
      #expect(error?.code == "STORE_UNAVAILABLE")
      #expect(error?.message.contains(path) == true && error?.message.contains("not an SQLite database") == true)
      // Nothing was done to it.
      #expect(try String(contentsOfFile: path, encoding: .utf8).hasPrefix("Dear reader"))
    }
  }

  @Test func aMissingFolderIsNamed() throws {
    let error = failure(opening: "/nonexistent-folder/a.db")
    #expect(error?.code == "STORE_UNAVAILABLE")
    #expect(error?.message.contains("/nonexistent-folder") == true)
  }

  @Test(arguments: [
    (SQLITE_BUSY, "STORE_BUSY"), (SQLITE_LOCKED, "STORE_BUSY"), (SQLITE_READONLY, "STORE_UNAVAILABLE"),
    (SQLITE_FULL, "STORE"), (SQLITE_IOERR, "STORE"), (SQLITE_CORRUPT, "STORE"), (SQLITE_CONSTRAINT, "LOCAL_CONSTRAINT"),
    (SQLITE_ERROR, "STORE"),
  ])
  func codesMapToTheCatalogue(code: Int32, catalogue: String) {
    let error = StoreFailure.describe(SQLiteError(code: code | 0x100, message: "m", sql: nil), path: "/a/b.db")
    #expect(error.code == catalogue)
    #expect(!error.message.isEmpty)
  }

  private static let full: [(Int32, Int32)] = [
    (SQLITE_FULL, 0), (SQLITE_IOERR | 3 << 8, ENOSPC), (SQLITE_IOERR | 19 << 8, ENOSPC),
    (SQLITE_IOERR | 18 << 8, EDQUOT), (SQLITE_CANTOPEN, ENOSPC),
  ]

  /// A full disk shows in what SQLite writes beside the database too, and then not by its own code.
  @Test(arguments: full)
  func aFullDiskIsNamed(code: Int32, systemError: Int32) {
    let error = StoreFailure.describe(
      SQLiteError(code: code, message: "disk I/O error", sql: nil, systemError: systemError), path: "/a/b.db")
    #expect(error.code == "STORE" && error.message.hasPrefix("the disk that holds the database /a/b.db is full"))
  }

  @Test func anotherErrorOfTheDiskIsNotTakenForAFullOne() {
    let error = StoreFailure.describe(
      SQLiteError(code: SQLITE_IOERR | 3 << 8, message: "disk I/O error", sql: nil, systemError: EIO), path: "/a/b.db")
    #expect(error.message.contains("check the disk"))
  }

  @Test func aLockHeldByAnotherProgramIsBusy() throws {
    try withScratchFolder { folder in
      let path = folder + "/a.db"
      let one = try Database(DatabaseConfiguration(path: path, role: .writer))
      try one.run("BEGIN IMMEDIATE")
      let two = try Database(DatabaseConfiguration(path: path, role: .visitor, busyTimeoutMilliseconds: 1))
      let error = #expect(throws: KizunaSyncError.self) {
        try StoreFailure.translating(path: path) { try two.transaction {} }
      }
      #expect(error?.code == "STORE_BUSY" && error?.isRetryable == true)
      try one.run("COMMIT")
    }
  }
}
