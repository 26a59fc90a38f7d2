/// The tables a server synchronises and its limits, with the protocol's defaults (Kizuna wire contract §9).
public struct SyncServerConfiguration: Sendable, Hashable {
  public var tables: [String: SyncTable]
  /// Candidates one pull examines at most, withheld ones included.
  public var maxPullScan: Int
  /// Mutations one push may carry; nil is without limit.
  public var maxBatchSize: Int?
  /// Whether a push that is not atomic is refused.
  public var requireAtomic: Bool
  /// How far an origin clock may run ahead of the server's before it is lowered.
  public var hlcMaxSkewMilliseconds: Int64
  public var tombstoneTTLDays: Int
  /// Days a recorded verdict is kept.
  public var clientTTLDays: Int
  /// The page size of a pull that names none.
  public var defaultPageLimit: Int
  public var maxBucketEntries: Int
  /// Whether cursors that this server has not reached expire. They are of another server, or of this one before it was put
  /// back, and nothing would reach their owners until it has. The protocol lets them be (Kizuna wire contract §4.4).
  public var expiresCursorsAhead: Bool

  public init(
    tables: [String: SyncTable], maxPullScan: Int = 5000, maxBatchSize: Int? = 500, requireAtomic: Bool = false,
    hlcMaxSkewMilliseconds: Int64 = 5000, tombstoneTTLDays: Int = 30, clientTTLDays: Int = 90,
    defaultPageLimit: Int = 500, maxBucketEntries: Int = 64, expiresCursorsAhead: Bool = false
  ) {
    self.tables = tables
    self.maxPullScan = maxPullScan
    self.maxBatchSize = maxBatchSize
    self.requireAtomic = requireAtomic
    self.hlcMaxSkewMilliseconds = hlcMaxSkewMilliseconds
    self.tombstoneTTLDays = tombstoneTTLDays
    self.clientTTLDays = clientTTLDays
    self.defaultPageLimit = defaultPageLimit
    self.maxBucketEntries = maxBucketEntries
    self.expiresCursorsAhead = expiresCursorsAhead
  }

  /// Whether a client of this version must reset before it may sync these tables (Kizuna wire contract §4.3 step 3).
  func requiresReset(schemaVersion: Int?, tables names: some Sequence<String>) -> Bool {
    guard let schemaVersion else { return true }
    let asked = names.compactMap { tables[$0]?.minSchemaVersion }.max()
    let minimum = asked ?? tables.values.map(\.minSchemaVersion).max() ?? 1
    return schemaVersion < minimum
  }
}
