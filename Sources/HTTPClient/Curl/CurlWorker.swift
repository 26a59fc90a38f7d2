import CCurl
import CLinux
import Glibc
import HostKit

/// The multi handle and its easy handles. Made, used and freed on the curl thread.
final class CurlWorker {
  private let settings: CurlHTTPClient.Settings
  /// Owns the connections; replaced when they are dropped.
  private var multi: UnsafeMutableRawPointer
  private var active: [UnsafeMutableRawPointer: CurlHandle] = [:]
  private var idle: [CurlHandle] = []

  /// Each idle handle keeps about 70 KB of buffers.
  private static let maximumIdleHandles = 4

  /// Once a process, before any other call.
  private static let initialised: Void = { _ = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) }()

  init(_ settings: CurlHTTPClient.Settings) {
    _ = Self.initialised
    self.settings = settings
    multi = Self.makeMulti(settings)
  }

  private static func makeMulti(_ settings: CurlHTTPClient.Settings) -> UnsafeMutableRawPointer {
    // Fails only when memory or file descriptors are exhausted.
    let multi = curl_multi_init()!
    _ = kd_curl_multi_setopt_long(multi, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX))
    _ = kd_curl_multi_setopt_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, settings.maximumConnectionsPerHost)
    _ = kd_curl_multi_setopt_long(multi, CURLMOPT_MAXCONNECTS, settings.maximumKeptConnections)
    return multi
  }

  deinit {
    for handle in active.values { curl_multi_remove_handle(multi, handle.easy) }
    // Easy handles go before the multi handle that holds their connections.
    active = [:]
    idle = []
    curl_multi_cleanup(multi)
  }

  func start(_ transfer: CurlTransfer) {
    if transfer.isCancelled {
      transfer.finish(.failure(CancellationError()))
      return
    }
    let handle = idle.popLast() ?? CurlHandle(settings)
    do {
      try handle.prepare(transfer)
    } catch {
      retire(handle)
      transfer.finish(.failure(error))
      return
    }
    handle.mayReuseConnection(true)
    let code = curl_multi_add_handle(multi, handle.easy)
    guard code == CURLM_OK else {
      retire(handle)
      transfer.finish(.failure(HTTPError(.other, "the request could not be started (libcurl code \(code.rawValue))")))
      return
    }
    active[handle.easy] = handle
  }

  func cancel(_ transfer: CurlTransfer) {
    transfer.isCancelled = true
    guard let handle = active.values.first(where: { $0.transfer === transfer }) else { return }
    release(handle)
    transfer.finish(.failure(CancellationError()))
  }

  func failAll(_ error: HTTPError) {
    for handle in Array(active.values) {
      let transfer = handle.transfer
      release(handle)
      transfer?.finish(.failure(error))
    }
  }

  func dropConnections() {
    failAll(CurlHTTPClient.droppedError)
    curl_multi_cleanup(multi)
    multi = Self.makeMulti(settings)
  }

  /// Lets libcurl do what can be done now, and hands out the results.
  func perform() {
    var running: Int32 = 0
    _ = curl_multi_perform(multi, &running)
    var left: Int32 = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle, let handle = active[easy]
      else { continue }
      // The message is invalid once its handle is removed.
      let code = message.pointee.data.result
      if handle.isWorthRepeating(code), repeatOnNewConnection(handle) { continue }
      let transfer = handle.transfer
      let result = handle.result(code)
      // First the waiting task, then the housekeeping: the two then run side by side.
      transfer?.finish(result)
      release(handle)
    }
  }

  /// False when it cannot be, and the outcome stands.
  private func repeatOnNewConnection(_ handle: CurlHandle) -> Bool {
    curl_multi_remove_handle(multi, handle.easy)
    handle.prepareRepetition()
    guard curl_multi_add_handle(multi, handle.easy) == CURLM_OK else { return false }
    // A message was read, so `perform` has no further reason to look at this handle by itself.
    var running: Int32 = 0
    _ = curl_multi_perform(multi, &running)
    return true
  }

  /// Sleeps until a socket, one of libcurl's deadlines or the bell has something; for ever when nothing is under way.
  func wait(_ bell: Bell) {
    var descriptor = curl_waitfd(fd: bell.descriptor, events: Int16(CURL_WAIT_POLLIN), revents: 0)
    _ = curl_multi_poll(multi, &descriptor, 1, Int32.max, nil)
    if descriptor.revents != 0 { bell.silence() }
  }

  private func release(_ handle: CurlHandle) {
    active[handle.easy] = nil
    curl_multi_remove_handle(multi, handle.easy)
    retire(handle)
  }

  private func retire(_ handle: CurlHandle) {
    handle.clear()
    if idle.count < Self.maximumIdleHandles { idle.append(handle) }
  }
}
