import HostKit

/// A complete sync server as a value: configuration, rows, tombstones, grants, verdicts and the global seq.
///
/// A copy is a snapshot and costs nothing until one of the two changes. Each operation is one transaction: it either
/// happens whole or leaves the state as it was. Seqs are drawn in commit order and an aborted transaction gives its own
/// back, so they have no gaps. The type has no clock; operations are told the time.
///
/// ```swift
/// var server = SyncServerState(configuration: .init(tables: ["todos": .init(bucketColumn: "owner_id")]))
/// let answer = server.pull(request, caller: .user("…"), now: 0)
/// ```
public struct SyncServerState: Sendable {
  public let configuration: SyncServerConfiguration

  /// The seq the next change will get.
  public private(set) var nextSeq: Int64
  /// The highest seq of a reaped tombstone; older checkpoints are expired.
  public private(set) var reapHorizon: Int64 = 0
  private(set) var tables: [String: TableState] = [:]
  private(set) var grants: Set<Grant> = []
  private(set) var ledger: [String: LedgerEntry] = [:]

  /// What the running transaction did, and how to take it back. Empty between operations.
  private var done: [StateChange] = []
  private var undo: [StateChange] = []

  /// - Parameter firstSeq: the seq of the first change; everything below counts as committed history.
  public init(configuration: SyncServerConfiguration, firstSeq: Int64 = 1) {
    self.configuration = configuration
    nextSeq = firstSeq
  }

  /// The highest committed seq, 0 when there is none.
  public var horizon: Int64 { nextSeq - 1 }

  /// A live row's cells as the server holds them.
  public func row(_ table: String, _ key: String) -> [String: JSONValue]? {
    tables[table]?.rows[ByteKey(key)]?.cells
  }

  public func rowCount(_ table: String) -> Int { tables[table]?.rows.count ?? 0 }

  // MARK: Transactions

  /// Runs one operation as part of the running transaction: when it throws, nothing of it remains.
  mutating func whole<Result>(
    _ body: (inout SyncServerState) throws(RPCError) -> Result
  ) throws(RPCError) -> Result {
    let before = savepoint
    do throws(RPCError) {
      return try body(&self)
    } catch {
      rollback(to: before)
      throw error
    }
  }

  /// A point the running transaction can be taken back to.
  var savepoint: Int { done.count }

  mutating func rollback(to savepoint: Int) {
    while done.count > savepoint {
      done.removeLast()
      _ = replace(undo.removeLast())
    }
  }

  /// What the running transaction changed, in order.
  var changes: [StateChange] { done }

  /// Makes what the running transaction did final.
  mutating func endTransaction() {
    for change in undo {
      switch change {
      case .row(let table, _, let row?): tables[table]?.compact(bucket: row.bucket)
      case .tombstone(let table, let place, .some): tables[table]?.compact(bucket: place.bucket)
      default: break
      }
    }
    done.removeAll(keepingCapacity: true)
    undo.removeAll(keepingCapacity: true)
  }

  /// Makes a change as part of the running transaction.
  mutating func make(_ change: StateChange) {
    undo.append(replace(change))
    done.append(change)
  }

  /// Makes changes that were committed before, for example read from a journal. Not part of a transaction.
  public mutating func replay(_ changes: some Sequence<StateChange>) {
    for change in changes { _ = replace(change) }
  }

  /// Whether nothing has happened yet, not even the choice of a first seq.
  public var isUntouched: Bool { nextSeq == 1 && reapHorizon == 0 }

  /// What makes an untouched state count on from a time, so that cursors of an earlier server are expired and not ahead.
  ///
  /// - Parameter milliseconds: since 1970; no server draws more than a thousand seqs in each.
  public static func beginning(at milliseconds: Int64) -> [StateChange] {
    let last = max(milliseconds, 0) * 1000
    return [.nextSeq(last + 1), .reapHorizon(last)]
  }

  mutating func drawSeq() -> Int64 {
    let seq = nextSeq
    make(.nextSeq(seq + 1))
    return seq
  }

  /// Makes the change and returns the one that takes it back.
  private mutating func replace(_ change: StateChange) -> StateChange {
    switch change {
    case .nextSeq(let seq):
      defer { nextSeq = seq }
      return .nextSeq(nextSeq)
    case .reapHorizon(let seq):
      defer { reapHorizon = seq }
      return .reapHorizon(reapHorizon)
    case .row(let table, let key, let row):
      return .row(table: table, key: key, tables[table, default: TableState()].set(row, at: key))
    case .tombstone(let table, let place, let tombstone):
      return .tombstone(table: table, place, tables[table, default: TableState()].set(tombstone, at: place))
    case .grant(let grant, let held):
      let before = grants.contains(grant)
      if held { grants.insert(grant) } else { grants.remove(grant) }
      return .grant(grant, held: before)
    case .verdict(let id, let entry):
      return .verdict(id: id, ledger.updateOrRemove(entry, forKey: id))
    }
  }
}

extension Dictionary {
  fileprivate mutating func updateOrRemove(_ value: Value?, forKey key: Key) -> Value? {
    if let value { updateValue(value, forKey: key) } else { removeValue(forKey: key) }
  }
}
