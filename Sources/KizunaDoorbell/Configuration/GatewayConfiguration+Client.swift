import HostKit
import KizunaSync

extension GatewayConfiguration {
  /// What `KizunaSyncClient.create` takes. Without an access token; the session owner sets it.
  public var clientConfiguration: KizunaSyncClientConfig {
    var client = KizunaSyncClientConfig(
      schemaVersion: schemaVersion, tables: tables.mapValues(KizunaSyncTableConfig.init), databasePath: database,
      remote: KizunaSyncRemoteConfig(
        url: url.http(), publishableKey: publishableKey.value, localOnlyColumns: localOnlyColumns))
    client.visibilitySweepInterval = sweepInterval.inSeconds
    return client
  }

  /// The values of buckets that are chosen by the configuration, for `KizunaSyncClient.setBucket`; empty when none is.
  public var buckets: [String: JSONValue] {
    var values: [String: JSONValue] = [:]
    for table in tables.values {
      if case .column(let column, let value) = table.bucket { values[column] = value }
    }
    return values
  }

  /// The WebSocket's address without its query.
  public var webSocketURL: String {
    realtimeURL?.webSocket() ?? url.webSocket("/realtime/v1/websocket")
  }
}

extension KizunaSyncTableConfig {
  /// A table as a configuration file declares it.
  public init(_ declaration: TableDeclaration) {
    let bucket: KizunaSyncBucket =
      switch declaration.bucket {
      case .wholeTable: .none
      case .owner(let column): .byOwner(column)
      case .column(let column, _): .byColumn(column)
      }
    self.init(
      bucket: bucket, softDeleteColumn: declaration.softDeleteColumn,
      conflictMode: declaration.conflictMode == .hlc ? .hlc : .arrival,
      syncMode: declaration.syncMode == .pullOnly ? .pullOnly : .readWrite, key: declaration.key,
      columns: declaration.columns.mapValues { kind in
        switch kind {
        case .text: .text
        case .number: .number
        case .numeric: .numeric
        case .boolean: .boolean
        case .json: .json
        }
      })
  }
}
