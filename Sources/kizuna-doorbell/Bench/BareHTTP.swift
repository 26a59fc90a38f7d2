import CCurl
import HostKit

/// The least an HTTP client can do: one easy handle that posts over a connection it keeps.
///
/// Used from one thread.
final class BareHTTP {
  private let handle: OpaquePointer
  private var headers: UnsafeMutablePointer<curl_slist>?
  private var answer: [UInt8] = []

  init(url: String, headers list: [String]) throws {
    // Initialising twice is counted by libcurl and harmless.
    curl_global_init(Int(CURL_GLOBAL_ALL))
    guard let easy = curl_easy_init() else { throw CommandFailure(.failure, "libcurl could not start") }
    handle = OpaquePointer(easy)
    for line in list { headers = curl_slist_append(headers, line) }
    kd_curl_setopt_string(easy, CURLOPT_URL, url)
    kd_curl_setopt_slist(easy, CURLOPT_HTTPHEADER, headers)
    kd_curl_setopt_long(easy, CURLOPT_NOSIGNAL, 1)
    kd_curl_setopt_long(easy, CURLOPT_TIMEOUT, 30)
    kd_curl_setopt_string(easy, CURLOPT_NOPROXY, "*")
    kd_curl_setopt_data_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      guard let bytes, let context else { return 0 }
      let sink = Unmanaged<BareHTTP>.fromOpaque(context).takeUnretainedValue()
      UnsafeRawBufferPointer(start: bytes, count: size * count).withMemoryRebound(to: UInt8.self) {
        sink.answer.append(contentsOf: $0)
      }
      return size * count
    }
    // Not retained: the handle is closed before this object goes.
    kd_curl_setopt_pointer(easy, CURLOPT_WRITEDATA, Unmanaged.passUnretained(self).toOpaque())
  }

  deinit {
    curl_easy_cleanup(UnsafeMutableRawPointer(handle))
    curl_slist_free_all(headers)
  }

  func get() throws -> [UInt8] {
    kd_curl_setopt_long(UnsafeMutableRawPointer(handle), CURLOPT_HTTPGET, 1)
    answer.removeAll(keepingCapacity: true)
    try check(curl_easy_perform(UnsafeMutableRawPointer(handle)))
    return answer
  }

  /// - Returns: the answer and the nanoseconds of the exchange.
  func post(_ body: [UInt8]) throws -> (answer: [UInt8], duration: UInt64) {
    let easy = UnsafeMutableRawPointer(handle)
    answer.removeAll(keepingCapacity: true)
    var body = body
    let start = SystemClock.monotonic
    let result = body.withUnsafeMutableBytes { bytes -> CURLcode in
      kd_curl_setopt_long(easy, CURLOPT_POST, 1)
      kd_curl_setopt_long(easy, CURLOPT_POSTFIELDSIZE, bytes.count)
      kd_curl_setopt_pointer(easy, CURLOPT_POSTFIELDS, bytes.baseAddress)
      return curl_easy_perform(easy)
    }
    let duration = SystemClock.monotonic - start
    try check(result)
    return (answer, duration)
  }

  private func check(_ result: CURLcode) throws {
    var status = 0
    kd_curl_getinfo_long(UnsafeMutableRawPointer(handle), CURLINFO_RESPONSE_CODE, &status)
    guard result == CURLE_OK, status == 200 else {
      throw CommandFailure(
        .unreachable, "a bare request failed: \(String(cString: curl_easy_strerror(result))), status \(status)")
    }
  }
}
