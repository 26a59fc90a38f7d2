import Glibc
import Testing

@testable import KizunaSync

@Suite struct LogNotificationsTests {
  @Test func aCommitIsASignAndReadingIsNone() throws {
    try withScratchFolder { folder in
      let writer = try PlainDatabase.withLog("\(folder)/a.db")
      let notifications = try LogNotifications(DatabaseFiles("\(folder)/a.db"))
      #expect(!notifications.take())
      try writer.run("INSERT INTO t VALUES (1)")
      #expect(notifications.take())
      #expect(!notifications.take())
      #expect(writer.integer("SELECT count(*) FROM t") == 1)
      #expect(!notifications.take())
    }
  }

  @Test func aLogThatIsMadeLaterOrAnewIsWatchedToo() throws {
    try withScratchFolder { folder in
      let notifications = try LogNotifications(DatabaseFiles("\(folder)/a.db"))
      #expect(!notifications.take())
      for round in 1...3 {
        do {
          let writer = try PlainDatabase.withLog("\(folder)/a.db")
          #expect(notifications.take(), "made, round \(round)")
          try writer.run("INSERT INTO t VALUES (1)")
          #expect(notifications.take(), "written, round \(round)")
        }
        // The last connection removes the log, and with it the watch.
        #expect(access("\(folder)/a.db-wal", F_OK) != 0)
        _ = notifications.take()
      }
    }
  }

  @Test func aLogThatIsMovedIntoPlaceIsASign() throws {
    try withScratchFolder { folder in
      let notifications = try LogNotifications(DatabaseFiles("\(folder)/a.db"))
      close(creat("\(folder)/other", 0o644))
      #expect(!notifications.take())
      rename("\(folder)/other", "\(folder)/a.db-wal")
      #expect(notifications.take())
    }
  }

  @Test func otherFilesOfTheFolderAreNone() throws {
    try withScratchFolder { folder in
      _ = try PlainDatabase.withLog("\(folder)/a.db")
      let notifications = try LogNotifications(DatabaseFiles("\(folder)/a.db"))
      let other = try PlainDatabase.withLog("\(folder)/b.db")
      try other.run("INSERT INTO t VALUES (1)")
      close(creat("\(folder)/a.db-wal2", 0o644))
      #expect(!notifications.take())
    }
  }

  @Test func aLinkIsFollowedAsSQLiteDoes() throws {
    try withScratchFolder { folder in
      mkdir("\(folder)/real", 0o755)
      let writer = try PlainDatabase.withLog("\(folder)/real/a.db")
      symlink("real/a.db", "\(folder)/link.db")
      let notifications = try LogNotifications(DatabaseFiles("\(folder)/link.db"))
      try writer.run("INSERT INTO t VALUES (1)")
      #expect(notifications.take())
    }
  }
}
