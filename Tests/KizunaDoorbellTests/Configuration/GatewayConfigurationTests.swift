import HostKit
import KizunaDoorbell
import KizunaSync
import Testing

@Suite struct GatewayConfigurationTests {
  /// A valid file in which one member can be replaced or removed.
  private func text(_ changes: [String: String?] = [:]) -> String {
    var members: [(String, String)] = [
      ("url", #""https://abc.supabase.co""#), ("publishableKey", #""sb_publishable_x""#),
      ("database", #""data/todos.db""#), ("tables", #"{"todos": {"bucket": {"owner": "owner_id"}}}"#),
      ("session", #"{"accessToken": "t0ken"}"#),
    ]
    for (key, value) in changes {
      members.removeAll { $0.0 == key }
      if let value { members.append((key, value)) }
    }
    return "{" + members.map { "\n\"\($0.0)\": \($0.1)," }.joined() + "\n}"
  }

  private func problems(_ changes: [String: String?]) -> [String] {
    do throws(ConfigurationError) {
      _ = try GatewayConfiguration.load(text: text(changes), file: "gw.json")
      return []
    } catch { return error.problems.map { "\($0.path): \($0.message)" } }
  }

  @Test func readsTheShortestFile() throws {
    let (configuration, warnings) = try GatewayConfiguration.load(text: text(), file: "/etc/kizuna/gw.json")
    #expect(configuration.url.http() == "https://abc.supabase.co")
    #expect(configuration.webSocketURL == "wss://abc.supabase.co/realtime/v1/websocket")
    #expect(configuration.database == "/etc/kizuna/data/todos.db")
    #expect(configuration.pollInterval == .seconds(15))
    #expect(configuration.buckets.isEmpty)
    #expect(warnings.isEmpty)
    let client = configuration.clientConfiguration
    #expect(client.tables == ["todos": .init(bucket: .byOwner("owner_id"))])
    #expect(client.remote == .init(url: "https://abc.supabase.co", publishableKey: "sb_publishable_x"))
    #expect(client.databasePath == "/etc/kizuna/data/todos.db")
    #expect(client.schemaVersion == 1)
  }

  @Test func readsEverything() throws {
    let tables = """
      {"seats": {"bucket": {"column": "team", "value": 7}, "key": ["hall", "seat"], "softDeleteColumn": "gone",
       "conflictMode": "hlc", "syncMode": "pull-only", "columns": {"price": "numeric"}}}
      """
    let (configuration, _) = try GatewayConfiguration.load(
      text: text([
        "realtimeURL": #""ws://127.0.0.1:4000/socket/websocket""#, "pollInterval": "2.5", "schemaVersion": "3",
        "session": #"{"email": "a@example.com", "password": "pw"}"#, "tables": tables, "resumeThreshold": "3",
        "localOnlyColumns": #"["note_to_self"]"#,
        "realtime": #"{"heartbeatInterval": 2.5, "heartbeatDeadline": 1, "reconnectBase": 0.1, "reconnectCap": 7, "#
          + #""reconnectBudget": 200}"#,
      ]), file: "gw.json")
    #expect(configuration.resumeThreshold == 3_000_000_000)
    #expect(configuration.clientConfiguration.remote?.localOnlyColumns == ["note_to_self"])
    #expect(configuration.realtimePolicy.heartbeat.interval == 2_500_000_000)
    #expect(configuration.realtimePolicy.heartbeat.deadline == 1_000_000_000)
    #expect(configuration.realtimePolicy.reconnect.base == 100_000_000)
    #expect(configuration.realtimePolicy.reconnect.cap == 7_000_000_000)
    #expect(configuration.realtimePolicy.reconnect.budget == 200)
    #expect(configuration.webSocketURL == "ws://127.0.0.1:4000/socket/websocket")
    #expect(configuration.pollInterval == 2_500_000_000)
    #expect(configuration.session == .password(email: "a@example.com", password: .init(literal: "pw")))
    #expect(configuration.buckets == ["team": 7])
    #expect(configuration.clientConfiguration.schemaVersion == 3)
    #expect(
      configuration.clientConfiguration.tables == [
        "seats": .init(
          bucket: .byColumn("team"), softDeleteColumn: "gone", conflictMode: .hlc, syncMode: .pullOnly,
          key: ["hall", "seat"], columns: ["price": .numeric])
      ])
  }

  private static let refusals: [([String: String?], String)] = [
    (["url": nil], "\"url\" is missing"), (["url": #""http://example.com""#], "url: plain http is allowed only"),
    (["url": #""example.com""#], "url: the server address must have the form https://host"),
    (["url": #""127.0.0.1:54377""#], "url: the server address must have the form http://host or https://host"),
    (["url": #""https://<ref>.supabase.co""#], "url: the server address holds a placeholder; put your project's own"),
    (["url": #""https://u:p@example.com""#], "url: the server address must not hold a user name"),
    (["realtimeURL": #""ws://example.com/x""#], "realtimeURL: plain ws is allowed only"),
    (["publishableKey": nil], "\"publishableKey\" is missing"),
    (["database": #"":memory:""#], "database: a database in memory"),
    (["tables": nil], "\"tables\" is missing"), (["session": nil], "\"session\" is missing"),
    (["session": "{}"], "session: give exactly one of"),
    (["session": #"{"accessToken": "a", "email": "a@b.c"}"#], "session: give exactly one of"),
    (["session": #"{"email": "a@b.c"}"#], "session: give \"email\" one of"),
    (["session": #"{"email": "nobody", "password": "x"}"#], "session.email: this is not an e-mail address"),
    (["session": #"{"accessToken": "a", "password": "x"}"#], "session.password: belongs to \"email\""),
    (
      ["session": #"{"accessTokenFile": "/nonexistent/t"}"#],
      "session.accessTokenFile: the secret file \"/nonexistent/t\" cannot be read"
    ),
    (["session": #"{"accesToken": "a"}"#], "session: give exactly one of"),
    (["pollInterval": "0"], "pollInterval: must be seconds, a number from 1 to 86400"),
    (["pollInterval": #""15s""#], "pollInterval: must be seconds"),
    (["schemaVersion": "0"], "schemaVersion: must be a whole number"),
    (["realtime": #"{"reconnectCap": 0.5}"#], "realtime.reconnectCap: must not be less than \"reconnectBase\""),
    (
      ["realtime": #"{"heartbeatInterval": 60}"#],
      "realtime.heartbeatInterval: must be seconds, a number from 0.1 to 50"
    ),
    (["realtime": #"{"reconnectbase": 1}"#], "realtime.reconnectbase: unknown key"),
    (["pollintervall": "3"], "pollintervall: unknown key; did you mean \"pollInterval\"?"),
  ]

  @Test(arguments: refusals)
  func refuses(changes: [String: String?], problem: String) {
    let found = problems(changes)
    #expect(found.contains { $0.contains(problem) }, "\(found)")
  }

  @Test func reportsAllProblemsAtOnce() {
    let found = problems(["url": nil, "database": "7", "session": #"{"email": "x"}"#, "tables": "{}"])
    #expect(found.count == 5)
  }

  @Test func noSecretInDescriptions() throws {
    let (configuration, _) = try GatewayConfiguration.load(text: text(), file: "gw.json")
    var dumped = ""
    dump(configuration, to: &dumped)
    #expect(!dumped.contains("t0ken"))
    #expect(!"\(configuration)".contains("t0ken"))
  }
}
