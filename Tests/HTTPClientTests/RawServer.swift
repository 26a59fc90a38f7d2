import CLinux
import Glibc
import HostKit

/// A server on plain sockets whose every byte is the test's own: one thread per connection, one call per request.
final class RawServer: Sendable {
  struct Request: Sendable {
    var method = ""
    var target = ""
    /// Names in lower case.
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []

    func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
  }

  enum Next { case keep, close }

  /// What a handler writes to. Used on the connection's thread only.
  struct Connection: Sendable {
    let socket: Int32
    let number: Int

    func write(_ text: String) { write(Array(text.utf8)) }

    /// Writes all of it; a peer that went away ends the connection soon enough.
    func write(_ bytes: [UInt8]) {
      var sent = 0
      while sent < bytes.count {
        let count = bytes[sent...].withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        if count <= 0 { return }
        sent += count
      }
    }

    func answer(_ status: Int = 200, headers: [String] = [], _ body: String = "") {
      let head = ["HTTP/1.1 \(status) X", "Content-Length: \(body.utf8.count)"] + headers
      write(head.joined(separator: "\r\n") + "\r\n\r\n" + body)
    }

    /// Closes with RST instead of FIN.
    func reset() {
      var option = linger(l_onoff: 1, l_linger: 0)
      setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    /// Returns when the peer has closed its side.
    func waitForClose() {
      var byte: UInt8 = 0
      while recv(socket, &byte, 1, 0) > 0 {}
    }
  }

  typealias Handler = @Sendable (Request, Connection) -> Next

  let port: UInt16
  private let listener: Int32
  private let accepted = Locked(0)
  private let requests = Locked<[Request]>([])
  private let handler: Handler

  var connectionCount: Int { accepted.withLock { $0 } }
  var received: [Request] { requests.withLock { $0 } }
  var url: String { "http://127.0.0.1:\(port)" }

  init(_ handler: @escaping Handler) {
    self.handler = handler
    (listener, port) = Self.listen()
    HostThread.detach(name: "raw-server") { [self] in
      while true {
        let socket = kd_accept_closed_on_exec(listener)
        // Closed here alone: by the time this thread comes back to `accept`, the number might be another test's listener.
        if socket < 0 { return _ = close(listener) }
        let number = accepted.withLock { count -> Int in
          count += 1
          return count
        }
        HostThread.detach(name: "raw-connection") { [self] in
          serve(Connection(socket: socket, number: number))
        }
      }
    }
  }

  /// Ends the accepting thread; connections end when their peers close.
  func stop() {
    Glibc.shutdown(listener, Int32(SHUT_RDWR))
  }

  /// A port on which nobody listens.
  static func freePort() -> UInt16 {
    let (socket, port) = listen()
    close(socket)
    return port
  }

  private static func listen() -> (Int32, UInt16) {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var one: Int32 = 1
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, 4)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        precondition(bind(listener, address, length) == 0)
        precondition(Glibc.listen(listener, 128) == 0)
        getsockname(listener, address, &length)
      }
    }
    return (listener, UInt16(bigEndian: address.sin_port))
  }

  private func serve(_ connection: Connection) {
    defer { close(connection.socket) }
    var buffer: [UInt8] = []
    while let request = read(connection, &buffer) {
      requests.withLock { $0.append(request) }
      if handler(request, connection) == .close { return }
    }
  }

  private func read(_ connection: Connection, _ buffer: inout [UInt8]) -> Request? {
    func fill() -> Bool {
      var piece = [UInt8](repeating: 0, count: 65536)
      let count = recv(connection.socket, &piece, piece.count, 0)
      if count > 0 { buffer.append(contentsOf: piece[..<count]) }
      return count > 0
    }
    let end: Int
    while true {
      if let found = (0..<max(0, buffer.count - 3)).first(where: {
        buffer[$0..<($0 + 4)].elementsEqual("\r\n\r\n".utf8)
      }) {
        end = found
        break
      }
      if !fill() { return nil }
    }
    let lines = String(decoding: buffer[..<end], as: UTF8.self).split(separator: "\r\n")
    var request = Request()
    let first = lines[0].split(separator: " ")
    request.method = String(first[0])
    request.target = String(first[1])
    for line in lines.dropFirst() {
      let pair = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      request.headers.append((pair[0].lowercased(), pair.count > 1 ? String(pair[1].drop { $0 == " " }) : ""))
    }
    buffer.removeFirst(end + 4)
    let length = request.header("content-length").flatMap { Int($0) } ?? 0
    while buffer.count < length { if !fill() { return nil } }
    request.body = Array(buffer[..<length])
    buffer.removeFirst(length)
    return request
  }
}

/// Holds a handler back until the test lets it go on.
final class Gate: @unchecked Sendable {  // sem_t is thread-safe by definition
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  func open() { sem_post(semaphore) }
  func wait() { sem_wait(semaphore) }
}
