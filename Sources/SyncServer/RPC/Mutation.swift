import HostKit

/// One mutation of a push, its shape checked (Kizuna wire contract §5.1).
struct Mutation {
  enum Op: String {
    case insert, update, delete
  }

  let id: String
  let table: String
  let key: ByteKey
  /// The key text split into the table's key columns; empty when the table is not synchronised.
  let keyParts: [String]
  let op: Op
  let columns: [String: JSONValue]
  let precondition: [String: JSONValue]
  let transforms: [String: Transform]
  let hlc: HLCStamp?

  /// - Throws: `22023` naming the position, which counts from 1.
  init(_ value: JSONValue, position: Int, configuration: SyncServerConfiguration) throws(RPCError) {
    func fail(_ what: String) -> RPCError { RPCError("22023", "mutation \(position): \(what)") }
    func object(_ name: String) throws(RPCError) -> [String: JSONValue]? {
      guard let member = value[name], !member.isNull else { return nil }
      guard let object = member.objectValue else { throw fail("\(name) must be an object") }
      return object
    }
    guard value.objectValue != nil else { throw fail("not an object") }
    guard let id = value["mutation_id"]?.stringValue, PrimaryKey.isUUID(id) else {
      throw fail("mutation_id must be a uuid")
    }
    guard let op = value["op"]?.stringValue.flatMap(Op.init(rawValue:)) else {
      throw fail("op must be insert, update or delete")
    }
    guard let table = value["table"]?.stringValue else { throw fail("table must be a string") }
    guard let pk = value["pk"]?.stringValue, !pk.isEmpty else { throw fail("pk must be a non-empty string") }
    let configured = configuration.tables[table]
    if let configured {
      guard let parts = PrimaryKey.parts(of: pk, columns: configured.keyColumns, types: configured.columns) else {
        throw fail("pk is not canonical for the table")
      }
      keyParts = parts
    } else {
      keyParts = []
    }
    self.id = id.lowercased()
    self.table = table
    key = ByteKey(pk)
    self.op = op
    columns = try object("columns") ?? [:]
    precondition = try object("precondition") ?? [:]
    if let members = try object("transforms") {
      guard op == .update else { throw fail("transforms belong to an update") }
      var transforms: [String: Transform] = [:]
      for (column, member) in members {
        guard let transform = Transform(member) else { throw fail("not a transform: column \(column)") }
        transforms[column] = transform
      }
      self.transforms = transforms
    } else {
      transforms = [:]
    }
    if configured?.conflictMode == .hlc {
      guard let stamp = value["hlc"]?.stringValue.flatMap(HLCStamp.init) else {
        throw fail("hlc is required and must be a clock reading")
      }
      hlc = stamp
    } else {
      hlc = nil
    }
  }
}
