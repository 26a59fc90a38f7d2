import HostKit
import KizunaSync
import Testing

@Suite struct KizunaSyncClientConfigTests {
  @Test func anIdIsMintedInLowerCase() {
    let config = KizunaSyncClientConfig(tables: [:])
    #expect(RandomUUID.isWellFormed(config.clientId))
    #expect(config.clientId == config.clientId.lowercased())
    #expect(config.clientId != KizunaSyncClientConfig(tables: [:]).clientId)
    #expect(config.clientId.dropFirst(14).first == "4")
    #expect("89ab".contains(config.clientId.dropFirst(19).first!))
  }

  @Test func theJSONFormLeavesOutWhatIsUnset() throws {
    let config = KizunaSyncClientConfig(
      clientId: "c", tables: ["a": .init(), "b": .init(bucket: .byOwner("owner_id"))])
    #expect(
      try config.jsonString()
        == #"{"client_id":"c","schema_version":1,"tables":{"a":{},"b":{"bucket_owner":"owner_id"}}}"#)
  }

  @Test func theJSONFormNamesEverything() throws {
    let config = KizunaSyncClientConfig(
      clientId: "c", schemaVersion: 2,
      tables: [
        "a": .init(
          bucket: .byColumn("team"), attachments: ["photo": .init(storageBucket: "s", ownerColumn: "o")],
          softDeleteColumn: "gone", conflictMode: .hlc, syncMode: .pullOnly, key: ["x", "y"], columns: ["n": .numeric])
      ], databasePath: "/d",
      remote: .init(url: "u", publishableKey: "k", accessToken: "t", schema: "s", localOnlyColumns: ["l"]),
      attachmentRoot: "/r", defaultLimit: 5, attachmentAttempts: 3)
    #expect(config.declaresAttachments)
    #expect(
      try JSONValue(parsing: config.jsonString())
        == JSONValue(
          parsing: """
            {"attachment_attempts":3,"attachment_root":"/r","client_id":"c","database_path":"/d","default_limit":5,
             "remote":{"access_token":"t","local_only_columns":["l"],"publishable_key":"k","schema":"s","url":"u"},
             "schema_version":2,"tables":{"a":{"attachments":{"photo":{"owner_column":"o","storage_bucket":"s"}},
               "bucket_column":"team","columns":{"n":"numeric"},"conflict_mode":"hlc","key":["x","y"],
               "soft_delete_column":"gone","sync_mode":"pull-only"}}}
            """))
    #expect(config.jsonObject()["schema_version"] as? Int == 2)
  }
}
