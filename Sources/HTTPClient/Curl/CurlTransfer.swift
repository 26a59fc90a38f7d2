import CCurl
import Glibc
import HostKit

/// One request on its way: what libcurl's callbacks fill, and who waits for it.
///
/// Made by the caller's task, which then hands it to the curl thread; afterwards only that thread touches it.
final class CurlTransfer: @unchecked Sendable {  // handed over once, through the locked inbox of CurlLoop
  let request: HTTPRequest
  let route: Route
  private var continuation: CheckedContinuation<HTTPResponse, any Error>?

  /// Set when the cancellation overtook the start.
  var isCancelled = false

  private(set) var headers: [HTTPHeader] = []
  private(set) var body: [UInt8] = []
  private(set) var isTooLarge = false
  /// The answer's length is known, and it is too long.
  private var isAnnouncedTooLarge = false
  /// Sent a second time, on a new connection.
  var isRepeated = false
  var hasBegunAnswer: Bool { headerBytes > 0 }
  /// The empty line after the headers came. libcurl takes a connection that ends among the headers for an answer.
  private(set) var hasAllHeaders = false
  private var headerBytes = 0

  /// How an answer that is too long begins, if somebody wants to know.
  var head: [UInt8] { request.keepsHead && isTooLarge ? Array(body.prefix(Self.headBytes)) : [] }
  private static let headBytes = 16 << 10

  /// More than any honest server sends in headers.
  private static let maximumHeaderBytes = 256 << 10

  init(_ request: HTTPRequest, route: Route) {
    self.request = request
    self.route = route
  }

  func wait(_ continuation: CheckedContinuation<HTTPResponse, any Error>) {
    self.continuation = continuation
  }

  /// Resumes the waiting task; later calls change nothing.
  func finish(_ result: Result<HTTPResponse, any Error>) {
    continuation?.resume(with: result)
    continuation = nil
  }

  // MARK: What libcurl delivers

  /// Takes one header line; false stops the transfer.
  func receive(headerLine line: UnsafeRawBufferPointer) -> Bool {
    headerBytes += line.count
    if headerBytes > Self.maximumHeaderBytes {
      isTooLarge = true
      return false
    }
    if line.starts(with: "HTTP/".utf8) {
      // A status line; after an interim answer (100, 103) the real one follows and starts afresh.
      headers.removeAll(keepingCapacity: true)
      hasAllHeaders = false
      return true
    }
    if line.first == 0x0D || line.first == 0x0A {
      hasAllHeaders = true
      return true
    }
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return true }
    let name = String(decoding: line[..<colon], as: UTF8.self)
    let value = String(decoding: Self.trimmed(line[(colon + 1)...]), as: UTF8.self)
    headers.append(HTTPHeader(name, value))
    if name.lowercased() == "content-length", let length = Int(value) {
      isAnnouncedTooLarge = length > request.maximumResponseBytes
      if !isAnnouncedTooLarge { body.reserveCapacity(min(length, 1 << 20)) }
    }
    return true
  }

  /// Takes a piece of the body, decompressed; false stops the transfer.
  func receive(body piece: UnsafeRawBufferPointer) -> Bool {
    let room = request.maximumResponseBytes - body.count
    guard piece.count <= room, !isAnnouncedTooLarge || body.count + piece.count < Self.headBytes else {
      isTooLarge = true
      body.append(contentsOf: piece.prefix(max(0, room)))
      return false
    }
    body.append(contentsOf: piece)
    return true
  }

  private static func trimmed(_ text: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }
    var text = text.drop(while: isSpace)
    while let last = text.last, isSpace(last) { text.removeLast() }
    return text
  }

  /// libcurl's signature for header lines; the context is the transfer, unretained.
  static let onHeader: kd_curl_data_callback = { bytes, size, count, context in
    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
    // The handle's owner keeps the transfer alive while the transfer is in the multi handle.
    let transfer = Unmanaged<CurlTransfer>.fromOpaque(context!).takeUnretainedValue()
    return transfer.receive(headerLine: line) ? line.count : 0
  }

  /// libcurl's signature for body bytes; the context is the transfer, unretained.
  static let onBody: kd_curl_data_callback = { bytes, size, count, context in
    let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
    // As above.
    let transfer = Unmanaged<CurlTransfer>.fromOpaque(context!).takeUnretainedValue()
    // Writing fewer bytes than given is an error to libcurl; an empty piece is never delivered.
    return transfer.receive(body: piece) ? piece.count : 0
  }
}
