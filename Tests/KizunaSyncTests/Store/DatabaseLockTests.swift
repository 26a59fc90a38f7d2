import CLinux
import Glibc
import HostKit
import Testing

@testable import KizunaSync

@Suite struct DatabaseLockTests {
  @Test func aSecondClientOfTheSameProcessIsRefusedWithTheProcessID() throws {
    try withScratchFolder { folder in
      let lock = try DatabaseLock(database: "\(folder)/a.db")
      #expect(throws: DatabaseLockError.held(path: lock.path, processID: getpid())) {
        try DatabaseLock(database: "\(folder)/a.db")
      }
      #expect(DatabaseLock.holder(ofDatabase: "\(folder)/a.db") == .init(processID: getpid()))
      let text = try HostFile.readText(lock.path)
      #expect(text == "\(getpid())\n")
      lock.release()
      lock.release()
      #expect(DatabaseLock.holder(ofDatabase: "\(folder)/a.db") == nil)
      try DatabaseLock(database: "\(folder)/a.db").release()
    }
  }

  @Test func theLockLiesBesideTheDatabase() throws {
    try withScratchFolder { folder in
      let lock = try DatabaseLock(database: "\(folder)/a.db")
      #expect(lock.path == "\(folder)/a.db-kizuna.lock")
      _ = try DatabaseLock(database: "\(folder)/b.db")
    }
  }

  @Test func aLinkToTheDatabaseMeetsTheSameLock() throws {
    try withScratchFolder { folder in
      close(creat("\(folder)/a.db", 0o644))
      symlink("a.db", "\(folder)/link.db")
      symlink(folder, "\(folder)/here")
      let lock = try DatabaseLock(database: "\(folder)/a.db")
      for other in ["\(folder)/link.db", "\(folder)/here/a.db", "\(folder)/./a.db"] {
        #expect(throws: DatabaseLockError.held(path: lock.path, processID: getpid())) {
          try DatabaseLock(database: other)
        }
      }
    }
  }

  @Test func lettingGoReleases() throws {
    try withScratchFolder { folder in
      do { _ = try DatabaseLock(database: "\(folder)/a.db") }
      _ = try DatabaseLock(database: "\(folder)/a.db")
    }
  }

  @Test func anotherProcessIsNamedAndItsDeathFreesTheLock() async throws {
    try await withScratchFolder { folder in
      let path = "\(folder)/a.db-kizuna.lock"
      // flock(1) holds the lock while the shell it starts sleeps; the shell writes its own id, as a gateway would.
      let child = try ChildProcess(
        executable: "/usr/bin/flock",
        arguments: ["--no-fork", path, "/bin/sh", "-c", "echo $$ >\(path); echo ready; exec sleep 600"])
      #expect(try await child.line(of: .output, within: .seconds(150)) == "ready")
      #expect(throws: DatabaseLockError.held(path: path, processID: child.pid)) {
        try DatabaseLock(database: "\(folder)/a.db")
      }
      let said = DatabaseLockError.held(path: path, processID: child.pid).description
      #expect(said.contains("process \(child.pid) "))
      await child.stop()
      // What the dead process wrote is of no importance.
      let lock = try DatabaseLock(database: "\(folder)/a.db")
      #expect(DatabaseLock.holder(ofDatabase: "\(folder)/a.db") == .init(processID: getpid()))
      lock.release()
    }
  }

  @Test func lookingForTheHolderDoesNotKeepOthersOut() async throws {
    try await withScratchFolder { folder in
      let path = "\(folder)/a.db"
      try DatabaseLock(database: path).release()
      let isDone = Locked(false)
      let looker = Task.detached {
        while !isDone.withLock({ $0 }) {
          _ = DatabaseLock.holder(ofDatabase: path)
          // Often, but not always: the lock must be free now and then.
          usleep(50)
        }
      }
      defer { isDone.withLock { $0 = true } }
      for _ in 0..<3000 { try DatabaseLock(database: path).release() }
      isDone.withLock { $0 = true }
      await looker.value
    }
  }

  @Test func aFolderThatIsMissingIsReported() throws {
    #expect(throws: DatabaseLockError.unavailable(path: "/nowhere/a.db-kizuna.lock", errno: ENOENT)) {
      try DatabaseLock(database: "/nowhere/a.db")
    }
    #expect(
      DatabaseLockError.unavailable(path: "/nowhere/a.db-kizuna.lock", errno: ENOENT).description
        == "the lock file /nowhere/a.db-kizuna.lock cannot be used: No such file or directory; this user must be able "
        + "to write it")
  }

  @Test func aLockWhoseFileWasRemovedIsTakenAnew() throws {
    try withScratchFolder { folder in
      let database = "\(folder)/a.db"
      let lock = try DatabaseLock(database: database)
      #expect(lock.isEffective)
      unlink(lock.path)
      #expect(!lock.isEffective)
      try lock.renew()
      #expect(lock.isEffective)
      #expect(throws: DatabaseLockError.held(path: lock.path, processID: getpid())) {
        try DatabaseLock(database: database)
      }
      // Another one is quicker.
      unlink(lock.path)
      let other = try DatabaseLock(database: database)
      #expect(throws: DatabaseLockError.held(path: lock.path, processID: getpid())) { try lock.renew() }
      #expect(!lock.isEffective)
      other.release()
      lock.release()
    }
  }

  @Test func theLockIsNotInheritedByChildren() async throws {
    try await withScratchFolder { folder in
      let lock = try DatabaseLock(database: "\(folder)/a.db")
      let child = try ChildProcess(executable: "/bin/sh", arguments: ["-c", "echo ready; exec sleep 600"])
      #expect(try await child.line(of: .output, within: .seconds(150)) == "ready")
      lock.release()
      try DatabaseLock(database: "\(folder)/a.db").release()
      await child.stop()
    }
  }
}
