import HostKit

/// A write through the library, before it is checked.
struct LocalWrite: Sendable {
  var table: String
  /// nil on an insert whose key is in `columns`, or is to be minted.
  var pk: String?
  var op: KizunaSyncOp
  var columns: [String: JSONValue] = [:]
  /// Column → `{"op": …}`; updates only.
  var transforms: [String: JSONValue]?
  /// Column → the value the server must find.
  var precondition: [String: JSONValue]?
  /// nil mints one.
  var mutationID: String?
  /// nil mints one where the table wants it.
  var hlc: String?
  /// Writes of one name are all-or-nothing on the server.
  var group: String?

  init(
    table: String, pk: String? = nil, op: KizunaSyncOp, columns: [String: JSONValue] = [:],
    transforms: [String: JSONValue]? = nil, precondition: [String: JSONValue]? = nil, mutationID: String? = nil,
    hlc: String? = nil, group: String? = nil
  ) {
    self.table = table
    self.pk = pk
    self.op = op
    self.columns = columns
    self.transforms = transforms
    self.precondition = precondition
    self.mutationID = mutationID
    self.hlc = hlc
    self.group = group
  }
}

/// A checked write whose entry is still to be made from the journal rows its statement leaves.
struct PendingWrite {
  var write: LocalWrite
  var pk: String
  /// The columns that travel.
  var columns: RowMap
}
