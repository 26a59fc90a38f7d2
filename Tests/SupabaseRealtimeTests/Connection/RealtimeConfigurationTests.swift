import HostKit
import Testing

@testable import SupabaseRealtime

@Suite struct RealtimeConfigurationTests {
  @Test func theAddressOfAProject() throws {
    let configuration = RealtimeConfiguration(url: try ServerURL("https://abc.supabase.co/"), apiKey: "k+/= y")
    #expect(
      configuration.request().url
        == "wss://abc.supabase.co/realtime/v1/websocket?apikey=k%2B%2F%3D%20y&vsn=2.0.0")
    let local = RealtimeConfiguration(url: try ServerURL("http://127.0.0.1:54321"), apiKey: "k", version: .v1)
    #expect(local.request().url == "ws://127.0.0.1:54321/realtime/v1/websocket?apikey=k&vsn=1.0.0")
    #expect(local.request().headers.isEmpty)
  }

  /// The transport knows who was silent, so it must be the first to say so.
  @Test(arguments: [(15.0, 14.0), (90.0, 89.0), (1.0, 0.5), (0.0, 0.0)])
  func theTransportGivesUpBeforeTheMachine(deadline: Double, transport: Double) throws {
    var configuration = RealtimeConfiguration(url: try ServerURL("https://abc.supabase.co"), apiKey: "k")
    configuration.policy.handshakeDeadline = .seconds(deadline)
    #expect(configuration.request().handshakeTimeout == .seconds(transport))
  }

  @Test func anAddressOfItsOwnIsTakenAsItIs() throws {
    let plain = try ServerURL("ws://localhost:4000/socket/websocket", for: .webSocket)
    #expect(
      RealtimeConfiguration(endpoint: .webSocket(plain), apiKey: "k").request().url
        == "ws://localhost:4000/socket/websocket?apikey=k&vsn=2.0.0")
    let query = try ServerURL("wss://r.example/x?log_level=info", for: .webSocket)
    #expect(
      RealtimeConfiguration(endpoint: .webSocket(query), apiKey: "k").request().url
        == "wss://r.example/x?log_level=info&apikey=k&vsn=2.0.0")
  }

  /// Path and query of up to 1,900 bytes hold the key; a longer key goes into a header.
  @Test func aLongKeyTravelsInAHeader() throws {
    let url = try ServerURL("https://abc.supabase.co")
    let fixed = "/realtime/v1/websocket?apikey=&vsn=2.0.0".utf8.count
    let longest = String(repeating: "a", count: 1_900 - fixed)
    #expect(RealtimeConfiguration(url: url, apiKey: longest).request().headers.isEmpty)
    let request = RealtimeConfiguration(url: url, apiKey: longest + "a").request()
    #expect(request.url == "wss://abc.supabase.co/realtime/v1/websocket?vsn=2.0.0")
    #expect(request.headers.map(\.name) == ["x-api-key"])
    #expect(request.headers.first?.value == longest + "a")
  }

  @Test func itsDescriptionIsSafeToLog() throws {
    let configuration = RealtimeConfiguration(url: try ServerURL("https://abc.supabase.co"), apiKey: "secret-key")
    #expect(!"\(configuration)".contains("secret"))
    #expect(!String(reflecting: configuration).contains("secret"))
  }
}
