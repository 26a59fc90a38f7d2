import Foundation
import HostKit
import Testing

@Suite final class DurableFileTests {
  private let folder: String

  init() throws {
    folder = NSTemporaryDirectory() + "kizuna-durable-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private func mode(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  @Test func aFileIsMadeForItsOwnerOnly() throws {
    let path = folder + "/state"
    try DurableFile.replace(path, with: Array("one".utf8))
    #expect(try HostFile.readText(path) == "one")
    #expect(try mode(path) == 0o600)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["state"])
  }

  @Test func replacingTakesTheNewPermissionsAndTheNewContent() throws {
    let path = folder + "/state"
    try String(repeating: "x", count: 100_000).write(toFile: path, atomically: false, encoding: .utf8)
    #expect(chmod(path, 0o666) == 0)
    try DurableFile.replace(path, with: Array("two".utf8), mode: 0o640)
    #expect(try HostFile.readText(path) == "two")
    #expect(try mode(path) == 0o640)
  }

  @Test func whatACrashLeftBehindIsNoObstacle() throws {
    let path = folder + "/state"
    try "rest".write(toFile: "\(path).new-\(getpid())", atomically: false, encoding: .utf8)
    try DurableFile.replace(path, with: Array("one".utf8))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["state"])
  }

  @Test func aFailureLeavesTheOldFileAndNothingElse() throws {
    // A folder cannot be replaced by a file.
    let path = folder + "/state"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    #expect(throws: HostFileError.self) { try DurableFile.replace(path, with: Array("one".utf8)) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["state"])
    let error = #expect(throws: HostFileError.self) { try DurableFile.replace("/nowhere/state", with: []) }
    #expect(error?.path == "/nowhere/state")
    #expect(error?.isMissing == true)
  }
}
