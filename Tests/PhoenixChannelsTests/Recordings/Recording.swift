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

    /// The message this line holds, made whole where only its beginning was kept; nil for upgrades, closes and pings.
    var message: PhoenixMessage? {
      switch json["opcode"]?.stringValue {
      case "text": return (json["text"]?.stringValue ?? completedText).map { .text($0) }
      case "binary":
        if let completedBytes { return .binary(completedBytes) }
        guard let text = json["base64"]?.stringValue, let data = Data(base64Encoded: text) else { return nil }
        return .binary(Array(data))
      default: return nil
      }
    }

    /// What was left out is a run of the letter "a", and what closes the JSON behind it. A payload from the database ends
    /// with its id, whose length is known.
    private var completedText: String? {
      guard let prefix = json["text_prefix"]?.stringValue, let size = json["size"]?.intValue else { return nil }
      let isArray = prefix.hasPrefix("[")
      let end =
        switch (isFromServer, isArray) {
        case (true, false): Self.databaseEnd + #","type":"broadcast"}}"#
        case (true, true): #""}]"#
        case (false, false): #""},"ref":"5"}"#
        case (false, true): #""}]"#
        }
      // What the client sent need not be as long as it was.
      return prefix + (isFromServer ? Self.letters(size - prefix.utf8.count - end.utf8.count) : "") + end
    }

    private var completedBytes: [UInt8]? {
      guard let text = json["base64_prefix"]?.stringValue, let size = json["size"]?.intValue,
        let data = Data(base64Encoded: text.padding(toLength: (text.count + 3) / 4 * 4, withPad: "=", startingAt: 0))
      else { return nil }
      let missing = size - data.count - Self.databaseEnd.utf8.count
      return Array(data) + Array((Self.letters(missing) + Self.databaseEnd).utf8)
    }

    private static let databaseEnd = #"", "id": "00000000-0000-0000-0000-000000000000"}"#

    private static func letters(_ count: Int) -> String { String(repeating: "a", count: max(0, count)) }

    /// The number of a line, for messages.
    var sequence: Int { json["seq"]?.intValue ?? 0 }
  }

  /// `name/version`.
  let scenario: String
  var lines: [Line] = []

  /// The sockets, in the order they come.
  var connections: [String] {
    lines.map(\.connection).reduce(into: []) { if $1 != "http", $1 != "", !$0.contains($1) { $0.append($1) } }
  }

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
