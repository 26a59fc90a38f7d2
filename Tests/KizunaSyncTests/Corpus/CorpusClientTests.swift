import KizunaSyncTestSupport
import Testing

@testable import KizunaSync

/// The client half of every transcript: the client sends the recorded requests, byte for byte in structure, and shows
/// what the recording says after each answer.
@Suite struct CorpusClientTests {
  static let package = String(#filePath.prefix { _ in true }.split(separator: "/Tests/KizunaSyncTests/")[0])
  static let own = TranscriptFile.all(in: package + "/Tests/SyncServerTests/Transcripts")
  static let corpusDirectory = TranscriptFile.corpusDirectory(package: package)
  /// Pulls that a recording holds and the client never sends: another client of the same user made them.
  static let foreignPulls: [String: Int] = [:]
  static let corpus = TranscriptFile.all(in: corpusDirectory)

  @Test(arguments: own, ClientReplay.Mode.all)
  func playsOwnTranscript(file: TranscriptFile, mode: ClientReplay.Mode) async throws {
    try await play(file, mode)
  }

  @Test(
    .enabled(if: !corpus.isEmpty, "no transcripts in \(corpusDirectory); set KIZUNA_CORPUS to their directory"),
    arguments: corpus, ClientReplay.Mode.all)
  func playsRecordedTranscript(file: TranscriptFile, mode: ClientReplay.Mode) async throws {
    try await play(file, mode)
  }

  private func play(_ file: TranscriptFile, _ mode: ClientReplay.Mode) async throws {
    let transcript = try file.read()
    try await withScratchFolder { folder in
      let replay = try await ClientReplay(transcript, mode: mode, path: folder + "/replica.db")
      try await replay.run()
      await replay.close()
      #expect(replay.checks > 0, "nothing was checked")
      #expect(replay.skipped == Self.foreignPulls[file.name, default: 0], "pulls of other clients")
    }
  }
}
