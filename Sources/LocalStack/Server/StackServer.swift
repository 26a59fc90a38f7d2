import CLibwebsockets
import Glibc
import HostKit
import SupabaseRealtime

/// An HTTP/1.1 and WebSocket server on a libwebsockets loop of its own.
///
/// libwebsockets moves the bytes and does TLS; requests and frames are read here, because a development server has to
/// misbehave on demand in ways a finished server role does not allow.
final class StackServer: Sendable {
  struct Options: Sendable {
    var host = "127.0.0.1"
    /// 0 lets the system choose.
    var port: UInt16 = 0
    /// PEM files.
    var tls: (certificate: String, key: String)?
    var clock: any HostClock = SystemClock.shared
  }

  let host: String
  let port: UInt16
  let isSecure: Bool
  let loop: LwsLoop
  let clock: any HostClock
  /// Touched on the loop thread only.
  nonisolated(unsafe) private var core: StackServerCore?

  private init(_ options: Options, port: UInt16, loop: LwsLoop) {
    host = options.host
    self.port = port
    isSecure = options.tls != nil
    self.loop = loop
    clock = options.clock
  }

  /// - Parameters:
  ///   - handler: answers plain requests.
  ///   - sockets: decides about upgrades; called on `loop`.
  static func start(
    _ options: Options, loop: LwsLoop, handler: any StackHandler, sockets: any StackSocketOwner
  ) async throws(StackServerError) -> StackServer {
    if let tls = options.tls { try checkReadable([tls.certificate, tls.key]) }
    let listener = try ListeningSocket.open(host: options.host, port: options.port)
    let server = StackServer(options, port: listener.port, loop: loop)
    let result = await withCheckedContinuation { (done: CheckedContinuation<StackServerError?, Never>) in
      loop.run {
        let core = StackServerCore(
          loop: loop, clock: options.clock, handler: handler, sockets: sockets, certificate: options.tls?.certificate,
          key: options.tls?.key)
        let error = core.listen(on: listener.descriptor)
        if error == nil { server.core = core }
        done.resume(returning: error)
      }
    }
    if let result { throw result }
    return server
  }

  static func makeLoop(isSecure: Bool) -> LwsLoop {
    LwsLoop(name: "kizuna-stack", options: LwsLoop.ContextOptions(usesTLS: isSecure, maximumSockets: 4_096))
  }

  private static func checkReadable(_ files: [String]) throws(StackServerError) {
    for file in files {
      // libwebsockets would wait for a pipe's other end.
      do throws(HostFileError) { try HostFile.checkKind(file) } catch { throw .certificate(file) }
      if access(file, R_OK) != 0 { throw .certificate(file) }
    }
  }

  /// Ends all connections and the loop. Returns when the port is free.
  func stop() async {
    await withCheckedContinuation { done in
      loop.run { [self] in
        core?.stop()
        core = nil
        loop.stop { done.resume() }
      }
    }
  }

  var address: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
