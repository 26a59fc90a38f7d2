#if Postgres
  import HostKit
  import LocalStack

  /// A development server before a real PostgreSQL: PostgREST's interface to functions and tables, sign-in and Realtime
  /// behind one port, as a Supabase project has them.
  ///
  /// Nothing is assumed of the sync functions but that they are in an exposed schema.
  public final class PostgresStack: Sendable {
    public struct Options: Sendable {
      /// The schemas that requests may name; the first is meant where one names none.
      public var schemas = ["public", "kizunasync"]
      /// Sessions that serve requests.
      public var sessions = 16
      /// Whether what a plain PostgreSQL lacks is made at the start.
      public var appliesScaffolding = true
      /// Columns of the tables that are made, as a configuration file declares them.
      public var declarations: [String: TableDeclaration] = [:]
      public var server = LocalStack.Options()

      public init() {}
    }

    /// `http://host:port` or `https://host:port`.
    public let url: String
    /// Who was made to be able to sign in, sorted by email.
    public let users: [StackUser]
    private let tokens: StackTokens
    private let assembly: StackAssembly
    private let listener: MessageListener
    private let pools: [PostgresPool]
    private let administration: PostgresConnection

    private init(
      _ assembly: StackAssembly, users: [StackUser], tokens: StackTokens, listener: MessageListener,
      pools: [PostgresPool], administration: PostgresConnection
    ) {
      self.assembly = assembly
      self.users = users
      self.tokens = tokens
      self.listener = listener
      self.pools = pools
      self.administration = administration
      url = assembly.url
    }

    /// - Parameters:
    ///   - configuration: tables that are made where they are missing, users, and how tokens are signed; a directory is
    ///     not used.
    /// - Throws: `PostgresStackError`, or `StackServerError` when the address cannot be used.
    public static func start(
      _ address: PostgresAddress, _ configuration: LocalStackConfiguration, options: Options = Options()
    ) async throws -> PostgresStack {
      let administration = PostgresConnection(address)
      let store = PostgresAuthStore(PostgresConnection(address))
      let preparation = Preparation(connection: administration)
      let log = options.server.log
      let users: [StackUser]
      let secret: String
      do {
        if options.appliesScaffolding { try await preparation.scaffold() }
        try await preparation.checkRoles()
        users = try await store.add(configuration.users)
        try await preparation.makeTables(configuration.tables, options.declarations)
        if let given = configuration.jwtSecret { secret = given } else { secret = try await preparation.secret() }
        if try await !preparation.announcesMessages() {
          log.warning(
            "realtime.no_announcements",
            ["reason": "realtime.messages has no trigger that announces its rows, so nothing rings"])
        }
        if try await preparation.hidesMessages() {
          log.warning(
            "realtime.messages_hidden",
            ["reason": "row policies hide realtime.messages from this role, so nothing rings; ALTER ROLE … BYPASSRLS"])
        }
      } catch let error as PostgresError {
        throw error.isConnectionLost
          ? PostgresStackError.unreachable(error.message) : PostgresStackError.preparation(error)
      }
      let clock = options.server.clock
      let wall: @Sendable () -> Int64 = { clock.wallMilliseconds }
      let tokens = StackTokens(secret: secret, issuedAt: wall() / 1000)
      let pool = PostgresPool(address, limit: options.sessions, greeting: authenticator)
      let catalogue = Catalogue(pool)
      let rest = RESTService(
        pool: pool, catalogue: catalogue, tokens: tokens, schemas: options.schemas, wallMilliseconds: wall)
      let auth = AuthService(
        configuration: configuration, tokens: tokens, store: store, wallMilliseconds: wall)
      let times = NotificationTimes()
      let router = PostgresRouter(
        rest: rest, auth: auth, times: times,
        gate: APIKeyGate(tokens: tokens, requiresKey: configuration.requiresAPIKey), wallMilliseconds: wall)
      let probes = PostgresPool(address, limit: 4)
      let policy = PostgresPolicy(pool: probes, log: log)
      let assembly = try await StackAssembly.start(
        options.server, secret: secret, policy: RealtimePolicy { await policy.decide($0) }
      ) { _ in router }
      let hub = assembly.hub
      do {
        let listener = try MessageListener(address, log: log) { messages, at in
          times.add(messages.count, at: at)
          hub.loop.run {
            hub.assumeIsolated { hub in
              for message in messages {
                hub.sendFromDatabase(
                  topic: message.topic, event: message.event, payload: message.payload, isPrivate: message.isPrivate,
                  id: message.id)
              }
            }
          }
        } schemaChanged: {
          catalogue.forget()
        }
        try await listener.start()
        return PostgresStack(
          assembly, users: users, tokens: tokens, listener: listener, pools: [pool, probes],
          administration: administration)
      } catch {
        await assembly.stop()
        throw PostgresStackError.unreachable(error.message)
      }
    }

    /// PostgREST signs in as a role without any right of its own; a superuser's session becomes one of it.
    private static let authenticator = """
      DO $$
      BEGIN
        IF current_setting('is_superuser') = 'on' AND to_regrole('authenticator') IS NOT NULL THEN
          SET SESSION AUTHORIZATION authenticator;
        END IF;
      END
      $$
      """

    /// Closes all sockets and sessions and frees the port. Nothing may be asked afterwards.
    public func stop() async {
      await listener.stop()
      await assembly.hub.endWatching()
      await assembly.stop()
      for pool in pools { await pool.close() }
      await administration.close()
    }

    /// The key that clients send with every request: an `anon` token.
    public var publishableKey: String { tokens.publishableKey }
    public var jwtSecret: String { tokens.secret }
    /// `ws://…/realtime/v1/websocket`, without the key.
    public var realtimeURL: String { "ws" + url.dropFirst(4) + "/realtime/v1/websocket" }
    /// Whether messages of the database are received now.
    public var isListening: Bool { listener.isListening }

    /// How many sockets have joined a topic.
    ///
    /// - Parameter topic: without the `realtime:` prefix.
    public func members(of topic: String, isPrivate: Bool = true) async -> Int {
      await assembly.hub.memberCount(of: RealtimeRoom(topic: topic, isPrivate: isPrivate))
    }

    /// Sockets and joins, as the server counts them; `GET /_localstack/realtime` answers the same.
    public var realtimeCounts: RealtimeCounts { get async { await assembly.hub.counts } }
  }
#endif
