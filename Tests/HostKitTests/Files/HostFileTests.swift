import Glibc
import HostKit
import Testing

@Suite struct HostFileTests {
  @Test(arguments: [("/a/b.json", "/a"), ("b.json", "."), ("/b.json", "/"), ("x/y/z", "x/y")])
  func findsTheFolder(path: String, folder: String) {
    #expect(HostFile.directory(of: path) == folder)
  }

  @Test func resolvesAgainstTheFolder() {
    #expect(HostFile.resolve("b", in: "/a") == "/a/b")
    #expect(HostFile.resolve("/b", in: "/a") == "/b")
    #expect(HostFile.resolve("b", in: ".") == "b")
  }

  @Test func saysWhyAFileCannotBeRead() throws {
    #expect {
      try HostFile.read("/nonexistent/file")
    } throws: { error in
      (error as? HostFileError)?.code == ENOENT && "\(error)" == "/nonexistent/file: No such file or directory"
    }
    try withTemporaryDirectory { folder in
      try write([0xFF], to: folder + "/binary")
      #expect(throws: HostFileError(path: folder + "/binary", reason: "not UTF-8 text")) {
        try HostFile.readText(folder + "/binary")
      }
      try write(Array("12345".utf8), to: folder + "/long")
      #expect(throws: HostFileError(path: folder + "/long", reason: "longer than 4 bytes")) {
        try HostFile.read(folder + "/long", maximumBytes: 4)
      }
      #expect(try HostFile.readText(folder + "/long", maximumBytes: 5) == "12345")
    }
  }

  /// A pipe without a writer, or a device without an end, must not keep anybody waiting.
  @Test func nothingButARegularFileIsRead() throws {
    try withTemporaryDirectory { folder in
      #expect(mkfifo(folder + "/pipe", 0o600) == 0)
      symlink(folder + "/pipe", folder + "/link")
      symlink(folder + "/loop", folder + "/loop")
      let kinds = [
        (folder + "/pipe", "it is a pipe, not a file"), (folder + "/link", "it is a pipe, not a file"),
        ("/dev/zero", "it is a device, not a file"), (folder, "it is a folder, not a file"),
        (folder + "/loop", "Too many levels of symbolic links"), ("a\0b", "a path holds no NUL"),
      ]
      for (path, reason) in kinds {
        for call in [{ _ = try HostFile.read(path) }, { try HostFile.checkKind(path) }] {
          #expect {
            try call()
          } throws: { error in
            (error as? HostFileError)?.reason == reason
          }
        }
      }
      try write(Array("x".utf8), to: folder + "/file")
      symlink(folder + "/file", folder + "/other")
      #expect(try HostFile.readText(folder + "/other") == "x")
      // The size of what the kernel makes up is not known before.
      #expect(try !HostFile.readText("/proc/self/status").isEmpty)
    }
  }

  @Test func seesWhoMayRead() throws {
    try withTemporaryDirectory { folder in
      try write([], to: folder + "/f", mode: 0o640)
      #expect(!HostFile.isWorldReadable(folder + "/f"))
      chmod(folder + "/f", 0o644)
      #expect(HostFile.isWorldReadable(folder + "/f"))
      #expect(!HostFile.isWorldReadable(folder + "/absent"))
    }
  }
}
