import HostKit

/// The server a client syncs with.
public struct KizunaSyncRemoteConfig: Equatable, Sendable {
  /// The project's base address. `https`, or `http` on loopback and private networks only.
  public var url: String
  /// The publishable key, sent as `apikey`. Never used as a bearer token.
  public var publishableKey: String
  /// The signed-in user's access token, when one is already at hand.
  public var accessToken: String?
  /// The exposed schema of the two functions; `kizunasync` when nil.
  public var schema: String?
  /// Columns that are kept on this host and never sent.
  public var localOnlyColumns: [String]

  public init(
    url: String, publishableKey: String, accessToken: String? = nil, schema: String? = nil,
    localOnlyColumns: [String] = []
  ) {
    self.url = url
    self.publishableKey = publishableKey
    self.accessToken = accessToken
    self.schema = schema
    self.localOnlyColumns = localOnlyColumns
  }
}

/// Everything ``KizunaSyncClient/create(_:)`` needs to know.
public struct KizunaSyncClientConfig: Equatable, Sendable {
  /// A uuid that names this client. An id already kept in the database wins over it.
  public var clientId: String
  /// The app's data version, at least 1; the server may refuse old ones.
  public var schemaVersion: Int
  public var tables: [String: KizunaSyncTableConfig]
  /// nil or `":memory:"` keeps the replica in memory.
  public var databasePath: String?
  /// nil means local only: nothing is ever sent.
  public var remote: KizunaSyncRemoteConfig?
  public var attachmentRoot: String?
  /// Rows per pull page; the server's default when nil.
  public var defaultLimit: Int?
  public var attachmentAttempts: Int?
  /// Seconds between visibility sweeps, see ``KizunaSyncClient/sweep()``; nil makes none by itself. Each reads everything
  /// again.
  public var visibilitySweepInterval: Double?

  /// - Parameter clientId: nil mints a lower-case uuid.
  public init(
    clientId: String? = nil, schemaVersion: Int = 1, tables: [String: KizunaSyncTableConfig],
    databasePath: String? = nil, remote: KizunaSyncRemoteConfig? = nil, attachmentRoot: String? = nil,
    defaultLimit: Int? = nil, attachmentAttempts: Int? = nil
  ) {
    self.clientId = clientId ?? RandomUUID.make()
    self.schemaVersion = schemaVersion
    self.tables = tables
    self.databasePath = databasePath
    self.remote = remote
    self.attachmentRoot = attachmentRoot
    self.defaultLimit = defaultLimit
    self.attachmentAttempts = attachmentAttempts
  }

  /// Whether any table declares attachment columns.
  public var declaresAttachments: Bool {
    tables.values.contains { !$0.attachments.isEmpty }
  }

  /// The configuration as a JSON object with snake-case keys; unset members are left out. It holds the access token.
  public func jsonObject() -> [String: Any] {
    guard case .object(let members) = jsonValue() else { return [:] }
    return members.mapValues(PlainValue.any(from:))
  }

  /// `jsonObject()` as text, keys sorted.
  public func jsonString() throws -> String {
    JSONWriter.text(jsonValue())
  }

  private func jsonValue() -> JSONValue {
    var object: [String: JSONValue] = [
      "client_id": .string(clientId), "schema_version": .int(schemaVersion),
      "tables": .object(tables.mapValues(Self.json(table:))),
    ]
    object["default_limit"] = defaultLimit.map(JSONValue.int)
    object["attachment_attempts"] = attachmentAttempts.map(JSONValue.int)
    object["database_path"] = databasePath.map(JSONValue.string)
    object["attachment_root"] = attachmentRoot.map(JSONValue.string)
    object["remote"] = remote.map(Self.json(remote:))
    return .object(object)
  }

  private static func json(remote: KizunaSyncRemoteConfig) -> JSONValue {
    var object: [String: JSONValue] = [
      "url": .string(remote.url), "publishable_key": .string(remote.publishableKey),
    ]
    object["access_token"] = remote.accessToken.map(JSONValue.string)
    object["schema"] = remote.schema.map(JSONValue.string)
    if !remote.localOnlyColumns.isEmpty {
      object["local_only_columns"] = .array(remote.localOnlyColumns.map(JSONValue.string))
    }
    return .object(object)
  }

  private static func json(table: KizunaSyncTableConfig) -> JSONValue {
    var object: [String: JSONValue] = [:]
    switch table.bucket {
    case .none: break
    case .byOwner(let column): object["bucket_owner"] = .string(column)
    case .byColumn(let column): object["bucket_column"] = .string(column)
    }
    if !table.attachments.isEmpty {
      object["attachments"] = .object(
        table.attachments.mapValues {
          ["storage_bucket": .string($0.storageBucket), "owner_column": .string($0.ownerColumn)]
        })
    }
    object["soft_delete_column"] = table.softDeleteColumn.map(JSONValue.string)
    if table.conflictMode == .hlc { object["conflict_mode"] = .string(table.conflictMode.rawValue) }
    if table.syncMode == .pullOnly { object["sync_mode"] = .string(table.syncMode.rawValue) }
    if table.key != ["id"] { object["key"] = .array(table.key.map(JSONValue.string)) }
    if !table.columns.isEmpty { object["columns"] = .object(table.columns.mapValues { .string($0.rawValue) }) }
    return .object(object)
  }
}
