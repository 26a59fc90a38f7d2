import HostKit

/// A push's arguments, its mutations not yet read (Kizuna wire contract §5.1).
struct PushRequest {
  let atomic: Bool
  let mutations: [JSONValue]
  let schemaVersion: Int?

  init(_ body: JSONValue) throws(RPCError) {
    let arguments = try Arguments(
      body, of: "push", required: ["batch", "last_mutation_id", "schema_version"], optional: ["client_id"])
    _ = try arguments.uuid("client_id")
    _ = try arguments.uuid("last_mutation_id")
    schemaVersion = try arguments.integer("schema_version")
    guard let mutations = arguments["batch"]["mutations"]?.arrayValue else {
      throw RPCError("22023", "batch.mutations must be an array")
    }
    self.mutations = mutations
    atomic = arguments["batch"]["atomic"]?.boolValue ?? false
  }

  /// The tables the batch names, as far as they can be read.
  var tables: Set<String> { Set(mutations.compactMap { $0["table"]?.stringValue }) }
}
