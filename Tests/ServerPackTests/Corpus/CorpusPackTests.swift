import HostKit
import KizunaSyncTestSupport
import PostgresTestSupport
import Testing

/// The server half of every transcript against the pack in a real PostgreSQL: the recorded requests get the recorded
/// answers but for what may differ, the seqs and times of a server with a counter and a clock of its own.
@Suite(.enabled(if: PostgresInstallation.isPresent, Comment(rawValue: PostgresInstallation.absence)))
struct CorpusPackTests {
  static let own = TranscriptFile.all(in: PackDatabase.package + "/Tests/SyncServerTests/Transcripts")
  static let corpusDirectory = TranscriptFile.corpusDirectory(package: PackDatabase.package)
  static let corpus = TranscriptFile.all(in: corpusDirectory)

  @Test(arguments: own)
  func answersOwnTranscript(file: TranscriptFile) async throws {
    try await play(file)
  }

  @Test(
    .enabled(if: !corpus.isEmpty, "no transcripts in \(corpusDirectory); set KIZUNA_CORPUS to their directory"),
    arguments: corpus)
  func answersRecordedTranscript(file: TranscriptFile) async throws {
    try await play(file)
  }

  private func play(_ file: TranscriptFile) async throws {
    let transcript = try file.read()
    let extras = TranscriptExtras.of(transcript.name)
    if let reason = TranscriptServer.inapplicable(extras) {
      Issue.record("not applicable: \(reason)", severity: .warning)
      return
    }
    try await PackDatabase.with { pack in
      var server = TranscriptPack(pack, transcript, extras)
      try await server.prepare()
      for step in transcript.steps {
        if let difference = try await server.play(step) {
          Issue.record("\(transcript.name) step \(step.n)\n\(difference)")
          return
        }
      }
    }
  }
}
