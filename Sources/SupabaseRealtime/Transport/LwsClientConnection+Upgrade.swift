import CLibwebsockets
import HTTPClient

/// The upgrade request and its answer. Loop thread only.
extension LwsClientConnection {
  func addHeaders(_ wsi: OpaquePointer, to cursor: UnsafeMutableRawPointer, room: Int) -> Int32 {
    record.phase = .upgrading
    let position = cursor.assumingMemoryBound(to: UnsafeMutablePointer<UInt8>?.self)
    guard let start = position.pointee else { return -1 }
    let end = start + room
    for header in request.headers {
      let result = "\(header.name):".withCString { name in
        header.value.withCString { value in
          name.withMemoryRebound(to: UInt8.self, capacity: header.name.utf8.count + 2) { name in
            value.withMemoryRebound(to: UInt8.self, capacity: header.value.utf8.count + 1) { value in
              lws_add_http_header_by_name(wsi, name, value, Int32(header.value.utf8.count), position, end)
            }
          }
        }
      }
      if result != 0 {
        record.failure = RealtimeTransportFailure(.invalidURL, "The request headers are too long.")
        return -1
      }
    }
    return 0
  }

  /// The answer to the upgrade is here; anything but 101 ends the attempt.
  func answered(_ wsi: OpaquePointer) -> Int32 {
    let status = Int(lws_http_client_http_response(wsi))
    guard status != 101 else { return 0 }
    record.refusal = AttemptRecord.Refusal(status: status, retryAfterSeconds: retryAfter(wsi), body: nil)
    // What of the body came with the headers is still in libwebsockets' hands; this passes it to `refusalText`.
    var buffer: UnsafeMutablePointer<CChar>?
    var length: Int32 = 0
    _ = lws_http_client_read(wsi, &buffer, &length)
    if !refusalBytes.isEmpty { record.refusal?.body = String(decoding: refusalBytes, as: UTF8.self) }
    return -1
  }

  private func retryAfter(_ wsi: OpaquePointer) -> Int? {
    var text = [CChar](repeating: 0, count: 64)
    let length = lws_hdr_copy(wsi, &text, Int32(text.count), WSI_TOKEN_HTTP_RETRY_AFTER)
    guard length > 0 else { return nil }
    return RetryAfter.seconds(
      String(decoding: text.prefix(Int(length)).map { UInt8(bitPattern: $0) }, as: UTF8.self),
      now: environment.clock.wallMilliseconds)
  }

  func refusalText(_ piece: UnsafeRawBufferPointer) {
    refusalBytes.append(contentsOf: piece.prefix(environment.limits.refusalTextBytes - refusalBytes.count))
  }
}
