import HostKit
import Testing

@testable import LocalStack

/// The development server answers the recorded frames of clients as the real server did.
@Suite(
  .serialized, .timeLimit(.minutes(5)),
  .enabled(
    if: !Recording.all.isEmpty, "no recordings in \(Recording.directory); set KIZUNA_TRANSCRIPTS to their directory"))
struct RecordingTests {
  /// What is not replayed, and why.
  static let left: [String: String] = [
    "database_connections_killed": "PostgreSQL is stopped; there is none here",
    "database_restart": "PostgreSQL is stopped; there is none here",
    "server_shutdown_SIGTERM": "the server process is ended",
    "admin_shutdown_tenant": "tenants and their administration are not served",
    "protocol_unmasked_frame": "the recording does not say which frame was not masked; see WebSocketParserTests",
    "protocol_unknown_opcode": "see WebSocketParserTests",
    "too_many_messages": "message rates are not limited",
  ]

  static var played: [Recording] {
    Recording.all.filter { recording in
      if recording.scenario == "handshake_rejected/unknown-tenant" { return false }  // one tenant, whatever the host
      return left[recording.name] == nil
    }
  }

  @Test(arguments: played)
  func isAnsweredAsRecorded(recording: Recording) async throws {
    try await RecordingReplay.run(recording)
  }
}
