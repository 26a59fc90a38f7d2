/// Reads HTTP/1.1 requests from the bytes of one connection, however they are cut.
struct HTTPRequestParser {
  enum Event: Equatable {
    /// The client waits for `100 Continue` before it sends the body.
    case continueExpected
    case request(StackRequest, keepAlive: Bool)
  }

  /// A request that cannot be read; the connection ends after the answer.
  struct Refusal: Error, Equatable {
    let status: Int
  }

  static let maximumBodyBytes = 64 << 20
  /// The limits of a Realtime server (Realtime wire contract §1): a request line and a header value.
  private static let maximumRealtimeLineBytes = 8_000
  private static let maximumValueBytes = 4_096
  /// A request line for the other services: clients of tables name 256 uuids in one.
  private static let maximumLineBytes = 16 << 10
  private static let maximumHeadBytes = 64 << 10

  private enum State {
    case head
    case body(remaining: Int)
    case chunkSize
    case chunk(remaining: Int)
    case chunkEnd
    case trailer
  }

  private var state = State.head
  private var buffer: [UInt8] = []
  private var position = 0
  private var request = StackRequest(method: "", path: "")
  private var keepAlive = true

  mutating func add(_ bytes: some Collection<UInt8>) {
    if position > 0, position == buffer.count || position > 65_536 {
      buffer.removeFirst(position)
      position = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// Bytes that belong to no request yet; what follows an upgrade request is the first WebSocket data.
  mutating func takeRest() -> [UInt8] {
    defer {
      buffer = []
      position = 0
    }
    return Array(buffer[position...])
  }

  /// The next event in the bytes added so far; nil when more are needed.
  mutating func next() throws(Refusal) -> Event? {
    while true {
      switch state {
      case .head:
        // Another protocol, TLS for example, may never send the line end that is waited for.
        if let first = buffer[position...].first, first >= 0x7F || first < 0x20, first != 0x0D, first != 0x0A {
          throw Refusal(status: 400)
        }
        guard let end = try endOfHead() else { return nil }
        let expectsContinue = try readHead(end)
        if expectsContinue, needsBody { return .continueExpected }
      case .body(let remaining):
        let taken = take(remaining)
        if taken < remaining {
          state = .body(remaining: remaining - taken)
          return nil
        }
        return finish()
      case .chunkSize:
        guard let line = try line(limit: 1_024) else { return nil }
        let digits = line.prefix { $0 != UInt8(ascii: ";") }
        guard let size = Int(String(decoding: digits, as: UTF8.self).trimmed, radix: 16), size >= 0 else {
          throw Refusal(status: 400)
        }
        guard size <= Self.maximumBodyBytes - request.body.count else { throw Refusal(status: 413) }
        state = size == 0 ? .trailer : .chunk(remaining: size)
      case .chunk(let remaining):
        let taken = take(remaining)
        state = taken == remaining ? .chunkEnd : .chunk(remaining: remaining - taken)
        if taken < remaining { return nil }
      case .chunkEnd:
        guard let line = try line(limit: 2) else { return nil }
        guard line.isEmpty else { throw Refusal(status: 400) }
        state = .chunkSize
      case .trailer:
        guard let line = try line(limit: Self.maximumValueBytes) else { return nil }
        if line.isEmpty { return finish() }
      }
    }
  }

  private var needsBody: Bool {
    switch state {
    case .head: false
    case .body(let remaining): remaining > 0
    default: true
    }
  }

  private mutating func finish() -> Event {
    defer {
      request = StackRequest(method: "", path: "")
      state = .head
    }
    return .request(request, keepAlive: keepAlive)
  }

  private mutating func take(_ limit: Int) -> Int {
    let count = min(limit, buffer.count - position)
    request.body.append(contentsOf: buffer[position..<(position + count)])
    position += count
    return count
  }

  /// A line without its CRLF; nil when it is not there yet.
  private mutating func line(limit: Int) throws(Refusal) -> ArraySlice<UInt8>? {
    guard let newline = buffer[position...].firstIndex(of: 0x0A) else {
      if buffer.count - position > limit + 2 { throw Refusal(status: 400) }
      return nil
    }
    var line = buffer[position..<newline]
    if line.last == 0x0D { line = line.dropLast() }
    position = newline + 1
    return line
  }

  private func endOfHead() throws(Refusal) -> Int? {
    let bytes = buffer[position...]
    var previous: UInt8 = 0
    var lineLength = 0
    for (index, byte) in zip(bytes.indices, bytes) {
      if byte == 0x0A {
        if lineLength == 0 || (lineLength == 1 && previous == 0x0D) {
          // Empty lines before a request are allowed.
          if bytes[..<index].allSatisfy({ $0 == 0x0D || $0 == 0x0A }) {
            lineLength = 0
            continue
          }
          return index
        }
        lineLength = 0
      } else {
        lineLength += 1
      }
      previous = byte
    }
    let isFirstLine = !bytes.contains(0x0A)
    if isFirstLine, bytes.count > Self.maximumLineBytes + 100 { throw Refusal(status: 414) }
    if bytes.count > Self.maximumHeadBytes { throw Refusal(status: 431) }
    return nil
  }

  /// - Returns: whether the client waits for `100 Continue`.
  private mutating func readHead(_ end: Int) throws(Refusal) -> Bool {
    let head = String(decoding: buffer[position...end], as: UTF8.self)
    position = end + 1
    var lines = head.split(whereSeparator: \.isNewline)[...]
    guard let first = lines.popFirst() else { throw Refusal(status: 400) }
    let parts = first.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[2] == "HTTP/1.1" || parts[2] == "HTTP/1.0", parts[1].hasPrefix("/") else {
      throw Refusal(status: 400)
    }
    let isRealtime = parts[1].hasPrefix("/realtime/") || parts[1].hasPrefix("/socket/")
    guard first.utf8.count <= (isRealtime ? Self.maximumRealtimeLineBytes : Self.maximumLineBytes) else {
      throw Refusal(status: 414)
    }
    let target = parts[1].prefix { $0 != "#" }
    let path = target.prefix { $0 != "?" }
    request = StackRequest(
      method: String(parts[0]), path: String(path), query: String(target.dropFirst(path.count + 1)))
    for line in lines {
      guard let colon = line.firstIndex(of: ":"), colon > line.startIndex else { throw Refusal(status: 400) }
      let value = String(line[line.index(after: colon)...]).trimmed
      guard value.utf8.count <= Self.maximumValueBytes else { throw Refusal(status: 431) }
      request.headers.append(StackHeader(String(line[..<colon]), value))
    }
    let connection = request.header("connection")?.lowercased() ?? ""
    keepAlive = parts[2] == "HTTP/1.1" ? !connection.contains("close") : connection.contains("keep-alive")
    if request.header("transfer-encoding")?.lowercased().contains("chunked") == true {
      state = .chunkSize
    } else {
      let length = request.header("content-length").map { Int($0) } ?? 0
      guard let length, length >= 0 else { throw Refusal(status: 400) }
      guard length <= Self.maximumBodyBytes else { throw Refusal(status: 413) }
      request.body.reserveCapacity(length)
      state = .body(remaining: length)
    }
    return request.header("expect")?.lowercased() == "100-continue"
  }
}

extension String {
  /// Without spaces and tabs at the ends.
  fileprivate var trimmed: String {
    let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
    var text = self[...].drop(while: isBlank)
    while let last = text.last, isBlank(last) { text.removeLast() }
    return String(text)
  }
}
