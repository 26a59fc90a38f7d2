import HostKit

/// As much of an HTTP/2 server (RFC 9113) as a test needs, frame by frame, behind the TLS of `TLSServer`. One connection at
/// a time.
final class HTTP2Server: @unchecked Sendable {  // the program's pipes are touched by the server's thread only
  enum Action: Sendable {
    case answer(String)
    /// Ends the connection, saying that streams after this one were not processed.
    case goAway(lastStream: UInt32)
    /// A refusal of this one stream (REFUSED_STREAM), which was not processed.
    case refuse
  }

  private let tls: TLSServer
  private let action: @Sendable (_ connection: Int, _ stream: UInt32) -> Action
  private let seen = Locked<[String]>([])

  var port: UInt16 { tls.port }
  var authorityFile: String { tls.authorityFile }
  /// `connection/stream` of each request, in the order of their arrival.
  var requests: [String] { seen.withLock { $0 } }

  init(_ action: @escaping @Sendable (_ connection: Int, _ stream: UInt32) -> Action) throws {
    tls = try TLSServer(["-quiet", "-alpn", "h2"])
    self.action = action
    HostThread.detach(name: "http2-server") { self.run() }
  }

  func stop() { tls.stop() }

  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  private func run() {
    var connection = 0
    while let head = tls.server.read(9) {
      if head.elementsEqual(Self.preface.prefix(9)) {
        guard tls.server.read(Self.preface.count - 9) != nil else { return }
        connection += 1
        write(type: 4, stream: 0, [])
        continue
      }
      let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
      guard length == 0 || tls.server.read(length) != nil else { return }
      let stream = head[5..<9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
      let isLast = head[4] & 1 != 0
      switch head[3] {
      case 4 where !isLast: write(type: 4, flags: 1, stream: 0, [])
      case 0 where isLast, 1 where isLast: finish(connection, stream)
      default: break
      }
    }
  }

  private func finish(_ connection: Int, _ stream: UInt32) {
    seen.withLock { $0.append("\(connection)/\(stream)") }
    switch action(connection, stream) {
    case .answer(let body):
      // 0x88 is ":status: 200" of the static table.
      write(type: 1, flags: 4, stream: stream, [0x88])
      write(type: 0, flags: 1, stream: stream, Array(body.utf8))
    case .goAway(let last): write(type: 7, stream: 0, Self.bytes(last) + Self.bytes(0))
    case .refuse: write(type: 3, stream: stream, Self.bytes(7))
    }
  }

  private func write(type: UInt8, flags: UInt8 = 0, stream: UInt32, _ payload: [UInt8]) {
    tls.server.write(Self.bytes(UInt32(payload.count)).dropFirst() + [type, flags] + Self.bytes(stream) + payload)
  }

  private static func bytes(_ value: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
  }
}
