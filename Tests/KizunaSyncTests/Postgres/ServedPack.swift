#if Postgres
  import HTTPClient
  import HostKit
  import PostgresStack
  import PostgresTestSupport
  import ServerPack

  @testable import KizunaSync
  @testable import LocalStack

  /// A database with the server pack and some tables, served over HTTP.
  struct ServedPack: Sendable {
    let database: TestDatabase
    let stack: PostgresStack

    private static let secret = "a secret of sufficient length for tests"

    /// - Parameters:
    ///   - template: names the tables, so that they are made once.
    ///   - tables: SQL that makes and syncs them.
    static func start(_ template: String, _ tables: String) async throws -> ServedPack {
      let package = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined()
      let scaffolding = try HostFile.readText(package + "/Sources/PostgresStack/Resources/scaffolding.sql")
      let database = try await PostgresCluster.shared.makeDatabase(
        template: template, setUp: [scaffolding, ServerPack.migration, tables])
      do {
        let configuration = LocalStackConfiguration(tables: [:], users: [], jwtSecret: secret)
        let stack = try await PostgresStack.start(PostgresAddress(database.url()), configuration)
        return ServedPack(database: database, stack: stack)
      } catch {
        try? await database.drop()
        throw error
      }
    }

    static func with(_ template: String, _ tables: String, _ body: (ServedPack) async throws -> Void) async throws {
      let served = try await start(template, tables)
      do {
        try await body(served)
      } catch {
        await served.stop()
        throw error
      }
      await served.stop()
    }

    func stop() async {
      await stack.stop()
      try? await database.drop()
    }

    func token(_ user: String) -> String {
      JWT.sign(["sub": .string(user), "role": "authenticated"], secret: Self.secret)
    }

    func remote(_ user: String) -> KizunaSyncRemoteConfig {
      KizunaSyncRemoteConfig(url: stack.url, publishableKey: stack.publishableKey, accessToken: token(user))
    }
  }
#endif
