import Glibc
import Testing

@testable import KizunaSync

@Suite struct DatabaseFilesTests {
  @Test func whatCannotHoldADatabaseIsNamedWithTheRemedy() throws {
    try withScratchFolder { folder in
      close(creat(folder + "/file", 0o644))
      mkfifo(folder + "/pipe", 0o644)
      symlink(folder, folder + "/link")
      #expect(DatabaseFiles.problem(with: folder + "/a.db") == nil)
      #expect(DatabaseFiles.problem(with: folder + "/file") == nil)
      #expect(DatabaseFiles.problem(with: folder + "/link/a.db") == nil)
      let directory = DatabaseFiles.problem(with: folder)
      #expect(directory == "\(folder) is a directory; name a file in it, such as \(folder)/replica.db")
      #expect(DatabaseFiles.problem(with: folder + "/link")?.contains("is a directory") == true)
      #expect(DatabaseFiles.problem(with: folder + "/pipe")?.contains("neither a file nor new") == true)
      #expect(DatabaseFiles.problem(with: "/dev/null")?.contains("neither a file nor new") == true)
      #expect(
        DatabaseFiles.problem(with: folder + "/none/a.db")
          == "the directory \(folder)/none of the database does not exist; make it, or name another path")
      #expect(DatabaseFiles.problem(with: folder + "/file/a.db")?.contains("\(folder)/file is not a directory") == true)
    }
  }

  @Test func aLinkToWhatIsNotThereYetNamesTheTarget() throws {
    try withScratchFolder { folder in
      mkdir(folder + "/data", 0o755)
      symlink("data/real.db", folder + "/link.db")
      symlink("link.db", folder + "/link2.db")
      #expect(DatabaseFiles(folder + "/link2.db").database == folder + "/data/real.db")
      let database = try PlainDatabase.withLog(folder + "/link2.db")
      #expect(access(DatabaseFiles(folder + "/link2.db").writeAheadLog, F_OK) == 0)
      #expect(DatabaseFiles(folder + "/link2.db").database == folder + "/data/real.db")
      database.close()
    }
  }

  @Test func linksThatGoRoundAreNamed() throws {
    try withScratchFolder { folder in
      symlink("b.db", folder + "/a.db")
      symlink("a.db", folder + "/b.db")
      #expect(DatabaseFiles(folder + "/a.db").database.hasPrefix(folder))
      for path in [folder + "/a.db", folder + "/a.db/replica.db"] {
        #expect(
          DatabaseFiles.problem(with: path)?.hasPrefix("\(path) leads nowhere: a symbolic link on the way leads back")
            == true)
        let error = #expect(throws: KizunaSyncError.self) { try KizunaSyncReplicaStatus.read(databasePath: path) }
        #expect(error?.message.contains("leads back to itself") == true)
      }
      let long = folder + "/" + String(repeating: "x", count: 300)
      #expect(DatabaseFiles.problem(with: long)?.contains("name that is too long") == true)
    }
  }
}
