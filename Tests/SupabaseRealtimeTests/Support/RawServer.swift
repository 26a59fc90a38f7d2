import CLibwebsockets
import CLinux
import Glibc
import HostKit

/// A listening socket whose connections are played by a script, byte for byte, on plain blocking sockets.
final class RawServer: Sendable {
  let port: UInt16
  private let listener: Int32
  /// A thread accepts, and closes the listener when that is over.
  private let isServed: Bool

  /// - Parameters:
  ///   - host: the address to listen at.
  ///   - port: 0 takes any that is free.
  ///   - script: runs on a thread of its own for every connection; the connection is closed when it returns.
  init(
    backlog: Int32 = 16, host: String = "127.0.0.1", port: UInt16 = 0, script: (@Sendable (RawPeer) -> Void)?
  ) {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, String(port), &hints, &list) == 0, let entry = list?.pointee else {
      preconditionFailure("\(host) is no address")
    }
    defer { freeaddrinfo(list) }
    let listener = socket(entry.ai_family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    self.listener = listener
    isServed = script != nil
    precondition(
      bind(listener, entry.ai_addr, entry.ai_addrlen) == 0 && listen(listener, backlog) == 0, "no loopback socket")
    // The port stands at the same place in addresses of both families.
    var address = sockaddr_in6()
    var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
    let named = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(listener, $0, &size) }
    }
    precondition(named == 0, "no loopback socket")
    self.port = UInt16(bigEndian: address.sin6_port)
    guard let script else { return }
    HostThread.detach(name: "raw-server") {
      while true {
        let descriptor = kd_accept_closed_on_exec(listener)
        // Closed here alone: by the time this thread comes back to `accept`, the number might be another test's listener.
        guard descriptor >= 0 else { return _ = close(listener) }
        HostThread.detach(name: "raw-peer") {
          script(RawPeer(descriptor))
          close(descriptor)
        }
      }
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    if !isServed { close(listener) }
  }

  var url: String { "ws://127.0.0.1:\(port)/realtime/v1/websocket?vsn=2.0.0" }
}

/// The server's end of one connection.
struct RawPeer: Sendable {
  let descriptor: Int32

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Up to `count` bytes; empty at the end of the stream.
  func read(_ count: Int = 65_536) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: count)
    let got = recv(descriptor, &buffer, count, 0)
    return got > 0 ? Array(buffer[..<got]) : []
  }

  func readExactly(_ count: Int) -> [UInt8]? {
    var result: [UInt8] = []
    while result.count < count {
      let piece = read(count - result.count)
      if piece.isEmpty { return nil }
      result += piece
    }
    return result
  }

  /// - Returns: false when the peer has gone.
  @discardableResult
  func write(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if sent <= 0 { return false }
      rest = rest.dropFirst(sent)
    }
    return true
  }

  func write(_ text: String) { write(Array(text.utf8)) }

  /// The request up to the empty line, or nil when the peer went away.
  func readRequest() -> String? {
    var request: [UInt8] = []
    while !request.suffix(4).elementsEqual([13, 10, 13, 10]) {
      let piece = read(1)
      if piece.isEmpty { return nil }
      request += piece
    }
    return String(decoding: request, as: UTF8.self)
  }

  /// The bytes of the 101 that answers `request`.
  static func acceptance(of request: String) -> [UInt8] {
    let line = request.split(separator: "\r\n").first { $0.lowercased().hasPrefix("sec-websocket-key:") }
    let key = (line?.split(separator: ":", maxSplits: 1).last ?? "").drop { $0 == " " }
    var digest = [UInt8](repeating: 0, count: 20)
    let input = Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
    lws_SHA1(input, input.count, &digest)
    var encoded = [CChar](repeating: 0, count: 64)
    let length = digest.withUnsafeBytes {
      lws_b64_encode_string($0.bindMemory(to: CChar.self).baseAddress, 20, &encoded, 64)
    }
    let accept = String(decoding: encoded.prefix(Int(length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return Array(
      """
      HTTP/1.1 101 Switching Protocols\r
      connection: Upgrade\r
      upgrade: websocket\r
      sec-websocket-accept: \(accept)\r
      \r

      """.utf8)
  }

  /// Answers the upgrade; nil when the client went away before.
  @discardableResult
  func acceptUpgrade() -> String? {
    guard let request = readRequest() else { return nil }
    write(Self.acceptance(of: request))
    return request
  }

  /// An unmasked frame, as servers send them.
  static func frame(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
    var frame = [opcode | (isFinal ? 0x80 : 0)]
    switch payload.count {
    case ..<126: frame.append(UInt8(payload.count))
    case ..<65_536: frame += [126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
    default: frame += [127] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
    }
    return frame + payload
  }

  /// Begins a message and goes on with it until the client has gone.
  func writeEndlessly(_ fragmentBytes: Int) {
    let fragment = Self.frame(0, [UInt8](repeating: 65, count: fragmentBytes), isFinal: false)
    write(Self.frame(1, Array("begin".utf8), isFinal: false))
    while write(Array(repeating: fragment, count: 100).flatMap(\.self)) {}
  }

  struct Frame: Equatable {
    var opcode: UInt8
    var payload: [UInt8]
  }

  /// The next frame of the client, unmasked.
  func readFrame() -> Frame? {
    guard let head = readExactly(2) else { return nil }
    var length = Int(head[1] & 0x7F)
    if length >= 126 {
      guard let more = readExactly(length == 126 ? 2 : 8) else { return nil }
      length = more.reduce(0) { $0 << 8 | Int($1) }
    }
    guard head[1] & 0x80 != 0, let mask = readExactly(4), let masked = readExactly(length) else { return nil }
    return Frame(opcode: head[0] & 0x0F, payload: masked.enumerated().map { $1 ^ mask[$0 % 4] })
  }

  /// Whether the client is there still, without taking anything of what it sent.
  var isOpen: Bool {
    var byte: UInt8 = 0
    let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
    // What is unread hides the end that stands behind it, except from POLLRDHUP, which Swift does not import.
    var state = pollfd(fd: descriptor, events: 0x2000, revents: 0)
    return count != 0 && poll(&state, 1, 0) == 0
  }

  /// Waits until the client is gone.
  func drain() {
    while !read().isEmpty {}
  }
}
