import Glibc
import HostKit

/// A certificate authority of its own and a server certificate, made with the `openssl` program.
struct TestAuthority {
  let directory: String
  var authority: String { directory + "/ca.pem" }
  var certificate: String { directory + "/server.pem" }
  var key: String { directory + "/server.key" }

  /// - Parameter names: `DNS:…` and `IP:…` of the server.
  init(names: String) async throws {
    var template = Array("/tmp/kizuna-tls-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw HostFileError(path: "/tmp", code: errno) }
    directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let script = """
      set -e
      cd \(directory)
      openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj '/CN=Test authority' \
        -keyout ca.key -out ca.pem
      openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=server' -keyout server.key -out server.csr
      printf 'subjectAltName=\(names)' > names
      openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out leaf.pem
      cat leaf.pem ca.pem > server.pem
      """
    let ending = await (try ChildProcess(executable: "/bin/sh", arguments: ["-c", script])).ending()
    guard ending.code == 0 else { throw ChildProcessError(message: "openssl failed") }
  }

  func remove() async throws {
    _ = await (try ChildProcess(executable: "/bin/rm", arguments: ["-rf", directory])).ending()
  }
}
