import HostKit

/// One recorded sync conversation (Kizuna wire contract §16.1): what other devices do on the server, what the client
/// writes, every request and response, and what must hold afterwards.
public struct Transcript: Sendable {
  /// `flow/name`, which is also the file's path without `.json`.
  public var name: String
  public var title: String
  public var cites: [String]
  public var priority: String
  public var status: String
  public var fencing: String
  public var context: Context
  public var steps: [Step]
  public var postconditions: [Check]

  public struct Context: Sendable {
    public var clientID: String
    public var userID: String
    public var schemaVersion: Int
    public var notes: [String]
    public var minSchemaVersion: Int
    public var tombstoneTTLDays: Int
    /// Nil is the protocol's default.
    public var maxPullScan: Int?
    public var tables: [String: Table]
  }

  public struct Table: Sendable {
    /// Nil for a table that is pulled whole.
    public var bucketColumn: String?
    /// Empty means the default, `id`.
    public var keyColumns: [String]
    /// `arrival` or `hlc`.
    public var conflictMode: String
    public var conflictJournal: Bool
    public var softDeleteColumn: String?
  }

  public struct Step: Sendable {
    /// Counts from 1 without gaps.
    public var n: Int
    public var kind: Kind
  }

  public enum Kind: Sendable {
    case server(ServerOperation)
    case local(LocalWrite)
    case rpc(Function, request: JSONValue, response: JSONValue)
    case fault(Fault)
    case assert([Check])
  }

  public enum Function: String, Sendable {
    case pull, push
  }

  /// A change another device makes on the server.
  public enum ServerOperation: Sendable {
    case upsert(table: String, pk: String, columns: [String: JSONValue], hlc: String?)
    case delete(table: String, pk: String)
    /// Every recorded tombstone is reaped.
    case reap
  }

  public struct LocalWrite: Sendable {
    public enum Op: String, Sendable {
      case insert, update, delete
    }
    public var op: Op
    public var table: String
    public var pk: String
    public var columns: [String: JSONValue]
    public var mutationID: String
    public var precondition: [String: JSONValue]?
    public var transforms: [String: JSONValue]?
    public var hlc: String?
    /// The code the write must fail with; the queue then stays as it was.
    public var expectedError: String?
  }

  public enum Fault: Sendable {
    /// The server processes the request, its answer is lost.
    case dropAck(Function, request: JSONValue)
    /// The request never arrives.
    case transportError(Function, request: JSONValue?)
  }

  public enum Check: Sendable {
    /// The row a reader sees; nil means that there is none.
    case localRow(table: String, pk: String, row: [String: JSONValue]?)
    /// The durable cursor.
    case cursor(String)
    case outboxDepth(Int)
    case event(String)
    case noIntermediateCommit
  }
}

/// What is wrong with a transcript, and where.
public struct TranscriptError: Error, Sendable, Hashable, CustomStringConvertible {
  /// `steps.3.kind` and the like.
  public let place: String
  public let reason: String

  public init(place: String, reason: String) {
    self.place = place
    self.reason = reason
  }

  public var description: String { "\(place): \(reason)" }
}
