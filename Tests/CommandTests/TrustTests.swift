import HostKit
import Testing

/// A server whose certificate no authority of the system has signed.
@Suite struct TrustTests {
  private func withServer(_ body: (Scratch, String, String) async throws -> Void) async throws {
    try await Scratch.with { scratch in
      let (certificate, key) = (scratch.path + "/server.pem", scratch.path + "/server.key")
      let openssl = try ChildProcess(
        executable: "/usr/bin/openssl",
        arguments: [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
          "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
        ])
      try #require(await openssl.ending().code == 0)
      try await Stack.with("--tls-cert", certificate, "--tls-key", key) { stack in
        #expect(stack.url.hasPrefix("https://"))
        try await body(scratch, certificate, stack.configuration(database: scratch.path + "/a.db", more: "MORE"))
      }
    }
  }

  /// The authority of the configuration counts for both: requests and the doorbell.
  @Test func theConfigurationNamesAnAuthority() async throws {
    try await withServer { scratch, certificate, text in
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
        _ = try await listen.line(of: .output, within: .seconds(60)) { $0.contains("\"ready\":true") }
        await listen.stop()
      }
    }
  }

  @Test func theEnvironmentNamesAnAuthority() async throws {
    try await withServer { scratch, certificate, text in
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
