import HostKit
import PhoenixChannels
import Testing

@Suite struct RecordedFramesTests {
  /// What the server sent that is no frame: it echoes a topic of the wrong type that the recording client had sent.
  private static let exceptions: [String: PhoenixDecodingError] = [
    #"[null,"1",5,"phx_reply",{"status":"error","response":{"reason":"unmatched topic"}}]"#:
      .wrongType(member: "topic")
  ]

  @Test func everyRecordedFrameDecodes() throws {
    let recordings = try Recording.all() ?? Recording.selection()
    var frames = 0
    var exceptions = 0
    for recording in recordings {
      for line in recording.lines where line.isFromServer {
        guard let message = line.message else { continue }
        let serializer = PhoenixSerializer(recording.version(of: line.connection))
        if case .text(let text) = message, let expected = Self.exceptions[text] {
          #expect(throws: expected) { try serializer.decode(message) }
          exceptions += 1
          continue
        }
        let frame = try serializer.decode(message)
        frames += 1
        check(frame, message, recording, line)
      }
    }
    print("\(frames) recorded frames decoded, \(exceptions) known exceptions")
    #expect(frames > 100)
  }

  private func check(
    _ frame: PhoenixFrame, _ message: PhoenixMessage, _ recording: Recording, _ line: Recording.Line
  ) {
    let place: Comment = "\(recording.scenario) line \(line.sequence)"
    #expect(!frame.topic.isEmpty, place)
    #expect(!frame.event.isEmpty, place)
    if frame.event == "phx_reply" { #expect(["ok", "error"].contains(frame.replyStatus), place) }
    // Its name may be empty: the database function takes any text.
    if frame.event == "broadcast" { #expect(frame.userBroadcast != nil, place) }
    // A binary message of this server is always a user broadcast, and names no join.
    if case .binary = message {
      #expect(frame.event == "broadcast" && frame.joinRef == nil && frame.ref == nil, place)
    }
    // What was read can be written by the server's half, and reads the same again.
    let version = recording.version(of: line.connection)
    do {
      let again = try PhoenixSerializer(version).decode(PhoenixSerializer(version, side: .server).encode(frame))
      #expect(again == frame, place)
    } catch {
      Issue.record("\(place): \(error)")
    }
  }

  /// The recorded client is not ours, but its frames are frames.
  @Test func theServersHalfReadsWhatTheRecordedClientSent() throws {
    for recording in try Recording.all() ?? Recording.selection() {
      // These send rubbish on purpose.
      let name = recording.scenario.split(separator: "/")[0]
      if ["malformed_frames", "ping_and_fragments", "protocol_unmasked_frame"].contains(name) { continue }
      for line in recording.lines where line.isFromClient {
        guard let message = line.message, message != .text("") else { continue }
        let serializer = PhoenixSerializer(recording.version(of: line.connection), side: .server)
        #expect(throws: Never.self, "\(recording.scenario) line \(line.sequence)") { try serializer.decode(message) }
      }
    }
  }
}
