import Foundation

/// One transcript on disk.
public struct TranscriptFile: Sendable, CustomStringConvertible {
  /// `flow/name`.
  public let name: String
  public let path: String

  /// All transcripts `FLOW/NAME.json` in a directory, sorted by name; empty when there is no such directory.
  public static func all(in directory: String) -> [TranscriptFile] {
    let files = FileManager.default
    return (try? files.subpathsOfDirectory(atPath: directory))?.filter { $0.hasSuffix(".json") }.sorted().map {
      TranscriptFile(name: String($0.dropLast(5)), path: directory + "/" + $0)
    } ?? []
  }

  /// The recorded corpus of the protocol: the directory named by the environment variable `KIZUNA_CORPUS`, else
  /// `shared/corpus` beside the package's own directory. It is not part of this repository.
  ///
  /// - Parameter package: the package's directory.
  public static func corpusDirectory(package: String) -> String {
    if let named = ProcessInfo.processInfo.environment["KIZUNA_CORPUS"], !named.isEmpty { return named }
    return URL(fileURLWithPath: package).deletingLastPathComponent().appendingPathComponent("shared/corpus").path
  }

  public var description: String { name }

  public func bytes() throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

  public func read() throws -> Transcript { try Transcript(parsing: bytes()) }
}
