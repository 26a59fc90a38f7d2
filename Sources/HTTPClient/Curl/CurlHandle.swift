import CCurl
import CLinux
import Glibc
import HostKit

/// One easy handle of libcurl, reused for one transfer after another. Lives on the curl thread; freed in `deinit` only.
final class CurlHandle {
  let easy: UnsafeMutableRawPointer
  private(set) var transfer: CurlTransfer?
  private var route: Route?
  private var headerList: UnsafeMutablePointer<curl_slist>?
  private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))

  init(_ settings: CurlHTTPClient.Settings) {
    // Fails only when memory is exhausted.
    easy = curl_easy_init()!
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    setLasting(settings)
  }

  deinit {
    curl_easy_cleanup(easy)
    curl_slist_free_all(headerList)
    errorText.deallocate()
  }

  // MARK: Options

  private func set(_ option: CURLoption, _ value: Int) { _ = kd_curl_setopt_long(easy, option, value) }
  private func set(_ option: CURLoption, _ value: String?) {
    // libcurl copies strings.
    if let value {
      _ = kd_curl_setopt_string(easy, option, value)
    } else {
      _ = kd_curl_setopt_string(easy, option, nil)
    }
  }

  private func setLasting(_ settings: CurlHTTPClient.Settings) {
    set(CURLOPT_NOSIGNAL, 1)
    // Without it, ending a transfer waits for its getaddrinfo thread, on the thread of all transfers.
    set(CURLOPT_QUICK_EXIT, 1)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    set(CURLOPT_FOLLOWLOCATION, 0)
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    set(CURLOPT_NOPROGRESS, 1)
    set(CURLOPT_USERAGENT, settings.userAgent)
    _ = kd_curl_setopt_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
    _ = kd_curl_setopt_data_callback(easy, CURLOPT_HEADERFUNCTION, CurlTransfer.onHeader)
    _ = kd_curl_setopt_data_callback(easy, CURLOPT_WRITEFUNCTION, CurlTransfer.onBody)
    _ = kd_curl_setopt_socket_callback(easy, CURLOPT_SOCKOPTFUNCTION, Self.onSocket)
    set(CURLOPT_BUFFERSIZE, 64 << 10)

    set(CURLOPT_TCP_NODELAY, 1)
    set(CURLOPT_TCP_KEEPALIVE, 1)
    set(CURLOPT_TCP_KEEPIDLE, 60)
    set(CURLOPT_TCP_KEEPINTVL, 15)
    set(CURLOPT_MAXAGE_CONN, Int(settings.maximumIdle / 1_000_000_000))

    set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    set(CURLOPT_SSL_VERIFYPEER, 1)
    set(CURLOPT_SSL_VERIFYHOST, 2)
    if let file = settings.authorityFile {
      // Anything but a file is refused as one that cannot be read, as a folder is: a pipe would be waited for.
      set(CURLOPT_CAINFO, (try? HostFile.checkKind(file)) == nil ? "/" : file)
    }
    // Both given, so that the environment has no say; the decision is ProxyRule's.
    set(CURLOPT_PROXY, "")
    set(CURLOPT_NOPROXY, "")
  }

  /// What libcurl leaves at the system's defaults: sockets are not inherited by child processes, and a connection whose
  /// peer does not acknowledge what was sent is given up after 10 s, not after a quarter of an hour.
  private static let onSocket: kd_curl_socket_callback = { _, socket, _ in
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
    var milliseconds: UInt32 = 10_000
    _ = setsockopt(
      socket, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, socklen_t(MemoryLayout<UInt32>.size))
    return Int32(CURL_SOCKOPT_OK)
  }

  // MARK: One transfer

  /// Sets everything a request decides.
  /// - Throws: `HTTPError` when a header cannot be sent.
  func prepare(_ transfer: CurlTransfer) throws(HTTPError) {
    let request = transfer.request
    try setHeaders(request)
    self.transfer = transfer
    let context = Unmanaged.passUnretained(transfer).toOpaque()
    _ = kd_curl_setopt_pointer(easy, CURLOPT_HEADERDATA, context)
    _ = kd_curl_setopt_pointer(easy, CURLOPT_WRITEDATA, context)
    set(CURLOPT_URL, request.url)
    setMethod(request)
    set(CURLOPT_TIMEOUT_MS, Self.milliseconds(request.timeout))
    set(CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(request.connectTimeout))
    // Known lengths are refused before the first byte of the body; the rest is counted as it comes.
    let longest = request.keepsHead ? 0 : max(request.maximumResponseBytes, 1)
    _ = kd_curl_setopt_off(easy, CURLOPT_MAXFILESIZE_LARGE, curl_off_t(longest))
    errorText[0] = 0
    if transfer.route != route { setRoute(transfer.route) }
  }

  /// What stays the same from request to request to one server.
  private func setRoute(_ route: Route) {
    self.route = route
    // Compressing costs the server time before the first byte, which a near network does not give back.
    set(CURLOPT_ACCEPT_ENCODING, route.isLoopback ? nil : "gzip")
    // Over TLS wait for the first connection's protocol: with HTTP/2 the others share it.
    set(CURLOPT_PIPEWAIT, route.isSecure ? 1 : 0)
    setProxy(route.proxy)
  }

  func mayReuseConnection(_ may: Bool) {
    set(CURLOPT_FRESH_CONNECT, may ? 0 : 1)
  }

  private func setMethod(_ request: HTTPRequest) {
    // Undo what the transfer before this one chose; HTTPGET also takes back NOBODY and POST.
    set(CURLOPT_NOBODY, 0)
    set(CURLOPT_HTTPGET, 1)
    set(CURLOPT_CUSTOMREQUEST, nil)
    if request.body != nil || request.method == "POST" {
      let body = request.body ?? []
      _ = kd_curl_setopt_off(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.count))
      // Copied by libcurl, so that no array has to keep its address; the size above bounds the copy. No address at all
      // would mean "ask the read callback".
      body.withUnsafeBytes { bytes in
        if let start = bytes.baseAddress {
          _ = kd_curl_setopt_pointer(easy, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: start))
        } else {
          set(CURLOPT_COPYPOSTFIELDS, "")
        }
      }
      if request.method != "POST" { set(CURLOPT_CUSTOMREQUEST, request.method) }
    } else if request.method == "HEAD" {
      set(CURLOPT_NOBODY, 1)
    } else if request.method != "GET" {
      set(CURLOPT_CUSTOMREQUEST, request.method)
    }
  }

  private func setHeaders(_ request: HTTPRequest) throws(HTTPError) {
    _ = kd_curl_setopt_slist(easy, CURLOPT_HTTPHEADER, nil)
    curl_slist_free_all(headerList)
    headerList = nil
    var hasContentType = false
    for header in request.headers {
      guard Self.isToken(header.name), !header.value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F })
      else { throw HTTPError(.other, "a request header holds a character that HTTP does not allow") }
      if header.name.lowercased() == "content-type" { hasContentType = true }
      // A semicolon is libcurl's way to send a header without a value.
      append(header.value.isEmpty ? "\(header.name);" : "\(header.name): \(header.value)")
    }
    // Waiting for "100 Continue" costs a round trip or, where the server does not know it, a second.
    append("Expect:")
    // libcurl would call any POST a form.
    if !hasContentType { append("Content-Type:") }
    _ = kd_curl_setopt_slist(easy, CURLOPT_HTTPHEADER, headerList)
  }

  private func append(_ line: String) {
    // Nil only when memory is exhausted; the old list stays valid then.
    headerList = curl_slist_append(headerList, line) ?? headerList
  }

  private static func isToken(_ name: String) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { byte in
        byte > 0x20 && byte < 0x7F && !"()<>@,;:\\\"/[]?={}".utf8.contains(byte)
      }
  }

  private func setProxy(_ proxy: ProxyServer?) {
    set(CURLOPT_PROXY, proxy?.address ?? "")
    set(CURLOPT_PROXYUSERNAME, proxy?.user)
    set(CURLOPT_PROXYPASSWORD, proxy?.password)
    set(CURLOPT_HTTPPROXYTUNNEL, proxy == nil ? 0 : 1)
  }

  private static func milliseconds(_ nanoseconds: UInt64) -> Int {
    // 0 would mean "for ever" to libcurl, and its milliseconds end at 2³¹.
    Int(min(max(nanoseconds / 1_000_000, 1), UInt64(Int32.max / 1000)))
  }

  /// The outcome, once libcurl reports the transfer as done.
  func result(_ code: CURLcode) -> Result<HTTPResponse, any Error> {
    guard let transfer else { return .failure(HTTPError(.other, "no transfer")) }
    let code = code == CURLE_OK && !transfer.hasAllHeaders ? CURLE_PARTIAL_FILE : code
    guard code == CURLE_OK else {
      let failure = CurlFailure(
        code: code, isTooLarge: transfer.isTooLarge, limit: transfer.request.maximumResponseBytes,
        timeout: transfer.request.timeout, connectTimeout: transfer.request.connectTimeout,
        resolved: off(CURLINFO_NAMELOOKUP_TIME_T) > 0,
        connected: isConnected(transfer.route),
        hasMoved: off(CURLINFO_SIZE_DOWNLOAD_T) > 0 || transfer.request.body.map { $0.count > Self.longBody } ?? false,
        systemError: Int32(truncatingIfNeeded: long(CURLINFO_OS_ERRNO)),
        verification: long(CURLINFO_SSL_VERIFYRESULT), proxyStatus: long(CURLINFO_HTTP_CONNECTCODE),
        proxyCode: long(CURLINFO_PROXY_ERROR), detail: String(cString: errorText))
      let error = failure.error(host: transfer.route.label, proxy: transfer.route.proxy?.label)
      return .failure(error.kind == .tooLarge ? HTTPError(error.kind, error.message, head: transfer.head) : error)
    }
    let received = SystemClock.monotonic
    let afterSending = max(0, off(CURLINFO_TOTAL_TIME_T) - off(CURLINFO_PRETRANSFER_TIME_T))
    return .success(
      HTTPResponse(
        status: long(CURLINFO_RESPONSE_CODE), headers: transfer.headers, body: transfer.body,
        requestSentAt: received - UInt64(afterSending) * 1000, responseReceivedAt: received,
        peerAddress: string(CURLINFO_PRIMARY_IP)))
  }

  /// Bytes of a request body beyond which the way there may be what takes the time.
  private static let longBody = 65_536

  /// The times of connecting are 0 where a connection was reused; the last one before the request is not. Through a proxy
  /// they are those of the proxy.
  private func isConnected(_ route: Route) -> Bool {
    if off(CURLINFO_PRETRANSFER_TIME_T) > 0 { return true }
    return route.isSecure
      ? off(CURLINFO_APPCONNECT_TIME_T) > 0
      : route.proxy == nil && off(CURLINFO_CONNECT_TIME_T) > 0
  }

  private func long(_ info: CURLINFO) -> Int {
    var value = 0
    _ = kd_curl_getinfo_long(easy, info, &value)
    return value
  }

  private func string(_ info: CURLINFO) -> String? {
    var value: UnsafeMutablePointer<CChar>?
    guard kd_curl_getinfo_string(easy, info, &value) == CURLE_OK, let value else { return nil }
    return String(cString: value)
  }

  private func off(_ info: CURLINFO) -> curl_off_t {
    var value: curl_off_t = 0
    _ = kd_curl_getinfo_off(easy, info, &value)
    return value
  }

  /// Whether the request failed only because its reused connection was ending, before any byte of an answer.
  ///
  /// Servers close HTTP/2 connections after some hundred or thousand requests (GOAWAY), and the next request may meet
  /// that. Under HTTP/1.1 libcurl repeats such requests by itself; this does the same for HTTP/2, once.
  func isWorthRepeating(_ code: CURLcode) -> Bool {
    guard code == CURLE_HTTP2 || code == CURLE_HTTP2_STREAM, let transfer, !transfer.isRepeated else { return false }
    return !transfer.hasBegunAnswer && long(CURLINFO_NUM_CONNECTS) == 0
  }

  /// Makes the handle ready to send the same request again, in what is left of its time.
  func prepareRepetition() {
    guard let transfer else { return }
    transfer.isRepeated = true
    let elapsed = UInt64(max(0, off(CURLINFO_TOTAL_TIME_T))) * 1000
    let timeout = transfer.request.timeout
    set(CURLOPT_TIMEOUT_MS, Self.milliseconds(timeout > elapsed ? timeout - elapsed : 0))
    mayReuseConnection(false)
  }

  /// Lets go of everything that belonged to the transfer, so that an idle handle keeps no secrets and no large body.
  func clear() {
    transfer = nil
    _ = kd_curl_setopt_pointer(easy, CURLOPT_HEADERDATA, nil)
    _ = kd_curl_setopt_pointer(easy, CURLOPT_WRITEDATA, nil)
    _ = kd_curl_setopt_pointer(easy, CURLOPT_POSTFIELDS, nil)
    _ = kd_curl_setopt_slist(easy, CURLOPT_HTTPHEADER, nil)
    curl_slist_free_all(headerList)
    headerList = nil
  }
}
