import HostKit
import Testing

@testable import LocalStack

@Suite struct JoinRequestTests {
  private func request(_ text: String) throws -> JoinRequest { try JoinRequest(JSONValue(parsing: text)) }

  @Test(arguments: ["true", #""true""#, #""TRUE""#])
  func flagsMayBeTexts(flag: String) throws {
    let request = try request(
      #"{"config":{"private":\#(flag),"broadcast":{"ack":\#(flag),"self":\#(flag),"replication_ready":\#(flag)},"presence":{"enabled":\#(flag)}}}"#
    )
    #expect(request.isPrivate)
    #expect(request.acknowledges)
    #expect(request.receivesOwn)
    #expect(request.wantsReplicationReady)
    #expect(request.presenceEnabled)
  }

  /// A typing error silently joins the public room.
  @Test(arguments: ["false", "null", "1", #""yes""#, #""maybe""#, "{}"])
  func everythingElseIsFalse(flag: String) throws {
    let request = try request(#"{"config":{"private":\#(flag),"broadcast":{"ack":\#(flag)}}}"#)
    #expect(!request.isPrivate)
    #expect(!request.acknowledges)
    #expect(!request.isLegacy)
  }

  @Test(
    arguments: [
      (#"{"config":{},"access_token":"a"}"#, "a"), (#"{"config":{},"user_token":"u"}"#, "u"),
      (#"{"config":{},"access_token":"a","user_token":"u"}"#, "a"), (#"{"config":{},"access_token":null}"#, nil),
      (#"{"config":{},"access_token":5}"#, nil), (#"{"config":{}}"#, nil),
    ] as [(String, String?)])
  func aTokenIsAText(text: String, token: String?) throws {
    #expect(try request(text).accessToken == token)
  }

  @Test func withoutConfigTheTopicNamesATable() throws {
    let request = try request("{}")
    #expect(request.isLegacy)
    let entry = PostgresChanges.echo(request, topic: "public:todos:id=eq.1").first
    #expect(entry?["schema"] == "public")
    #expect(entry?["table"] == "todos")
    #expect(entry?["filter"] == "id=eq.1")
    #expect(entry?["id"]?.intValue != nil)
  }

  @Test(arguments: [#"{"config":5}"#, #"{"config":{"broadcast":"yes"}}"#, #"{"config":{"broadcast":[]}}"#])
  func someTypesAreTooMuch(text: String) {
    #expect(throws: JoinRequest.Unreadable()) { try request(text) }
  }
}
