import HostKit
import Testing

/// A server whose certificate no authority of the system has signed.
@Suite struct TrustTests {
  /// - Parameters:
  ///   - name: whom the certificate is for.
  ///   - end: when it ends, in the spelling of certificates.
  private func withServer(
    name: String = "IP:127.0.0.1", until end: String = "20490101000000Z",
    _ body: (Scratch, String, String, Stack) async throws -> Void
  ) async throws {
    try await Scratch.with { scratch in
      let (certificate, key) = (scratch.path + "/server.pem", scratch.path + "/server.key")
      // Of all commands of `openssl` only `ca` makes certificates that are over already.
      let script = """
        set -e
        cd \(scratch.path)
        printf '%s\\n' '[ca]' 'default_ca = d' '[d]' 'database = index' 'serial = serial' 'new_certs_dir = .' \
          'default_md = sha256' 'policy = p' 'x509_extensions = x' '[p]' 'commonName = supplied' \
          '[x]' 'subjectAltName = \(name)' > ca.cnf
        : > index
        echo 01 > serial
        openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -keyout server.key -out r.pem
        openssl ca -batch -config ca.cnf -selfsign -keyfile server.key -in r.pem -out server.pem -notext \
          -startdate 20200101000000Z -enddate \(end)
        """
      let openssl = try ChildProcess(executable: "/bin/sh", arguments: ["-c", script])
      let ending = await openssl.ending()
      try #require(ending.code == 0, "\(ending.errors)")
      try await Stack.with("--tls-cert", certificate, "--tls-key", key) { stack in
        #expect(stack.url.hasPrefix("https://"))
        let text = stack.configuration(database: scratch.path + "/a.db", more: "MORE")
        try await body(scratch, certificate, text, stack)
      }
    }
  }

  /// Requests and the doorbell say why.
  @Test(
    .timeLimit(.minutes(5)),
    arguments: [
      ("IP:127.0.0.1", "20200201000000Z", "has expired", "certificate has expired"),
      ("DNS:elsewhere.example", "20490101000000Z", "is for another name", "mismatch"),
    ])
  func aCertificateThatIsOverOrOfAnotherIsRefused(name: String, end: String, https: String, wss: String) async throws {
    try await withServer(name: name, until: end) { scratch, certificate, text, stack in
      let file = try scratch.write("a.json", text.replacing("MORE", with: "\"authorityFile\": \"server.pem\","))
      let sync = try await Binaries.doorbell("sync", "--config", file)
      #expect(sync.code == ExitCode.unreachable.rawValue)
      #expect(sync.errors.contains { $0.contains(https) }, "\(sync.errors)")
      let socket = stack.url.replacing("https://", with: "wss://") + "/realtime/v1/websocket"
      let listen = try await Binaries.doorbell(
        "listen", "--realtime-url", socket, "--publishable-key", stack.publishableKey, "--table", "todos", "--public",
        "--authority-file", certificate)
      #expect(listen.code == ExitCode.unreachable.rawValue)
      #expect(listen.errors.contains { $0.contains(wss) }, "\(listen.errors)")
    }
  }

  /// The authority of the configuration counts for both: requests and the doorbell.
  @Test func theConfigurationNamesAnAuthority() async throws {
    try await withServer { scratch, certificate, text, _ in
      let without = try scratch.write("without.json", text.replacing("MORE", with: ""))
      let refused = try await Binaries.doorbell("sync", "--config", without)
      #expect(refused.code == ExitCode.unreachable.rawValue)
      #expect(refused.errors.contains { $0.contains("to trust it, name it as authorityFile") }, "\(refused.errors)")

      let file = try scratch.write("with.json", text.replacing("MORE", with: "\"authorityFile\": \"server.pem\","))
      let sync = try await Binaries.doorbell("sync", "--config", file)
      #expect(sync.code == ExitCode.ok.rawValue, "\(sync.errors)")
      try await RunningGateway.with(configuration: file) { _ in }
      for option in [["--config", file], ["--config", without, "--authority-file", certificate]] {
        let listen = try ChildProcess(executable: Binaries.doorbell, arguments: ["listen"] + option)
        _ = try await listen.line(of: .output, within: .seconds(150)) { $0.contains("\"ready\":true") }
        await listen.stop()
      }
    }
  }

  @Test func theEnvironmentNamesAnAuthority() async throws {
    try await withServer { scratch, certificate, text, _ in
      let file = try scratch.write("a.json", text.replacing("MORE", with: ""))
      let sync = try ChildProcess(
        executable: Binaries.doorbell, arguments: ["sync", "--config", file],
        environment: ["SSL_CERT_FILE": certificate])
      let ending = await sync.ending()
      #expect(ending.code == ExitCode.ok.rawValue, "\(ending.errors)")
    }
  }

  @Test(arguments: [("none.pem", "No such file"), ("a.json", "no certificate"), (".", "a folder")])
  func anAuthorityFileThatCannotBeOne(name: String, reason: String) async throws {
    try await Stack.with { stack in
      try await Scratch.with { scratch in
        let file = try scratch.write(
          "a.json", stack.configuration(database: "a.db", more: "\"authorityFile\": \"\(name)\","))
        let ending = try await Binaries.doorbell("sync", "--config", file)
        #expect(ending.code == ExitCode.configuration.rawValue)
        #expect(ending.errors.contains { $0.contains("authorityFile") && $0.contains(reason) }, "\(ending.errors)")
      }
    }
  }
}
