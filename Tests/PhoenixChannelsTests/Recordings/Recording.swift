import Foundation
import HostKit
import PhoenixChannels

/// Recorded conversations with a real server, one JSON object a line.
struct Recording {
  struct Line {
    let direction: String
    let connection: String
    let json: JSONValue

    var isFromServer: Bool { direction == "server->client" }
    var isFromClient: Bool { direction == "client->server" }

    /// The message this line holds; nil for upgrades, closes, pings, and messages of which only the beginning was kept.
    var message: PhoenixMessage? {
      switch json["opcode"]?.stringValue {
      case "text": return json["text"]?.stringValue.map { .text($0) }
      case "binary":
        guard let text = json["base64"]?.stringValue, let data = Data(base64Encoded: text) else { return nil }
        return .binary(Array(data))
      default: return nil
      }
    }

    /// The number of a line, for messages.
    var sequence: Int { json["seq"]?.intValue ?? 0 }
  }

  /// `name/version`.
  let scenario: String
  var lines: [Line] = []

  /// The version the upgrade request asks for; without it 1.0.0.
  func version(of connection: String) -> PhoenixVersion {
    let upgrade = lines.first { $0.connection == connection && $0.json["kind"]?.stringValue == "http-upgrade" }
    return upgrade?.json["request"]?.stringValue?.contains("vsn=2.0.0") == true ? .v2 : .v1
  }

  // MARK: Files

  private static let testsFolder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()

  /// The selection that is part of this repository.
  static func selection() throws -> [Recording] {
    try read(testsFolder.appending(path: "Fixtures/realtime-selection.jsonl"))
  }

  /// All recordings, where they are at hand: in the folder `KIZUNA_TRANSCRIPTS`, by default one
  /// beside the package.
  static func all() throws -> [Recording]? {
    let root = testsFolder.deletingLastPathComponent().deletingLastPathComponent()
    let folder =
      ProcessInfo.processInfo.environment["KIZUNA_TRANSCRIPTS"].map { URL(filePath: $0) }
      ?? root.appending(path: "../shared/transcripts")
    let file = folder.appending(path: "realtime-server.jsonl")
    guard FileManager.default.fileExists(atPath: file.path) else {
      print("note: no recordings at \(file.path); set KIZUNA_TRANSCRIPTS. Only the committed selection is tested.")
      return nil
    }
    return try read(file)
  }

  private static func read(_ file: URL) throws -> [Recording] {
    var recordings: [Recording] = []
    var places: [String: Int] = [:]
    for text in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
      let json = try JSONValue(parsing: String(text))
      let scenario = json["scenario"]?.stringValue ?? ""
      let place = places[scenario] ?? recordings.count
      if place == recordings.count {
        places[scenario] = place
        recordings.append(Recording(scenario: scenario))
      }
      recordings[place].lines.append(
        Line(
          direction: json["dir"]?.stringValue ?? "", connection: json["conn"]?.stringValue ?? "", json: json))
    }
    return recordings
  }
}
