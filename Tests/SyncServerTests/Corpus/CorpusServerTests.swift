import HostKit
import KizunaSyncTestSupport
import Testing

/// The server half of every transcript: the recorded requests get the recorded answers, byte for byte.
@Suite struct CorpusServerTests {
  static let package = #filePath.components(before: "/Tests/")
  static let own = TranscriptFile.all(in: package + "/Tests/SyncServerTests/Transcripts")
  static let corpusDirectory = TranscriptFile.corpusDirectory(package: package)
  static let corpus = TranscriptFile.all(in: corpusDirectory)

  @Test(arguments: own)
  func answersOwnTranscript(file: TranscriptFile) throws {
    try play(file)
  }

  @Test(
    .enabled(if: !corpus.isEmpty, "no transcripts in \(corpusDirectory); set KIZUNA_CORPUS to their directory"),
    arguments: corpus)
  func answersRecordedTranscript(file: TranscriptFile) throws {
    try play(file)
  }

  @Test func ownTranscriptsAreThere() {
    #expect(Self.own.count >= 8)
  }

  private func play(_ file: TranscriptFile) throws {
    let transcript = try file.read()
    #expect(transcript.name == file.name)
    // The files are canonical, so that equality of values is equality of bytes.
    let bytes = try file.bytes()
    #expect(JSONWriter.data(try JSONValue(parsing: bytes), indent: 2) + [0x0A] == bytes, "not canonical JSON")

    let extras = TranscriptExtras.of(transcript.name)
    if let reason = TranscriptServer.inapplicable(extras) {
      Issue.record("not applicable: \(reason)", severity: .warning)
      return
    }
    var server = try TranscriptServer(transcript, extras: extras)
    for step in transcript.steps {
      if let difference = try server.play(step) {
        Issue.record("\(transcript.name) \(difference)")
        return
      }
    }
  }
}

extension String {
  fileprivate func components(before separator: String) -> String {
    range(of: separator, in: self).map { String(self[..<$0]) } ?? self
  }

  private func range(of text: String, in whole: String) -> String.Index? {
    whole.indices.last { whole[$0...].hasPrefix(text) }
  }
}
