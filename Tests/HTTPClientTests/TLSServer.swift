import Foundation
import HostKit

/// A server of the `openssl` program with a certificate for `localhost`, signed by an authority made for the occasion.
final class TLSServer {
  static let program = "/usr/bin/openssl"
  static var isAvailable: Bool { FileManager.default.isExecutableFile(atPath: program) }

  struct Failure: Error { let step: String }

  let folder: String
  let port: UInt16
  let server: ChildProcess

  var authorityFile: String { folder + "/ca.pem" }

  /// - Parameter options: of `openssl s_server`; `-www` answers every request by itself, without it what the client sends
  ///   is the program's output and what the client gets is its input.
  init(_ options: [String] = ["-www"]) throws {
    folder = NSTemporaryDirectory() + "kizuna-tls-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let at = folder + "/"
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    try Self.run(
      ["req", "-x509", "-days", "2", "-subj", "/CN=An authority of the tests", "-keyout", at + "ca.key"]
        + ["-out", at + "ca.pem"] + key)
    try Self.run(["req", "-subj", "/CN=localhost", "-keyout", at + "server.key", "-out", at + "server.csr"] + key)
    try "subjectAltName=DNS:localhost\n".write(toFile: at + "names", atomically: false, encoding: .utf8)
    try Self.run(
      ["x509", "-req", "-days", "2", "-in", at + "server.csr", "-CA", at + "ca.pem", "-CAkey", at + "ca.key"]
        + ["-CAcreateserial", "-extfile", at + "names", "-out", at + "server.pem"])
    let arguments = [Self.program, "s_server", "-cert", at + "server.pem", "-key", at + "server.key"] + options
    guard options.contains("-www") else {
      port = RawServer.freePort()
      server = try ChildProcess(arguments + ["-accept", "127.0.0.1:\(port)"])
      return
    }
    server = try ChildProcess(arguments + ["-accept", "127.0.0.1:0"])
    // It says `ACCEPT 127.0.0.1:41123` once it listens.
    while let line = server.readLine() {
      guard line.hasPrefix("ACCEPT "), let port = line.split(separator: ":").last.flatMap({ UInt16($0) }) else {
        continue
      }
      self.port = port
      return
    }
    throw Failure(step: "s_server")
  }

  func stop() {
    server.kill()
    try? FileManager.default.removeItem(atPath: folder)
  }

  private static func run(_ arguments: [String]) throws {
    guard try ChildProcess([program] + arguments).wait() == 0 else { throw Failure(step: arguments[0]) }
  }
}
