import HostKit

/// The top level of a request body, whose keys are the function's argument names (Kizuna wire contract §2).
struct Arguments {
  private let function: String
  private let members: [String: JSONValue]

  /// - Throws: `PGRST202` when an argument is missing or unknown: the function is found by its argument names.
  init(_ body: JSONValue, of function: String, required: Set<String>, optional: Set<String>) throws(RPCError) {
    guard case .object(let members) = body else {
      throw RPCError("PGRST102", "The request body is not a JSON object")
    }
    let names = Set(members.keys)
    guard names.isSuperset(of: required), names.isSubset(of: required.union(optional)) else {
      let given = names.sorted().joined(separator: ", ")
      throw RPCError(
        "PGRST202",
        "Could not find the function kizunasync.\(function)(\(given)) in the schema cache")
    }
    self.function = function
    self.members = members
  }

  subscript(_ name: String) -> JSONValue { members[name] ?? .null }

  /// An `integer` argument; digits in a string are taken too. Nil for null.
  func integer(_ name: String) throws(RPCError) -> Int? {
    let value = self[name]
    if value.isNull { return nil }
    guard let integer = value.intValue ?? value.stringValue.flatMap({ Int($0) }) else {
      throw RPCError("22P02", "invalid input syntax for type integer: argument \(name)")
    }
    guard integer >= Int(Int32.min), integer <= Int(Int32.max) else {
      throw RPCError("22003", "value out of range for type integer: argument \(name)")
    }
    return integer
  }

  /// A `uuid` argument in lower case. Nil for null.
  func uuid(_ name: String) throws(RPCError) -> String? {
    let value = self[name]
    if value.isNull { return nil }
    guard let text = value.stringValue, PrimaryKey.isUUID(text) else {
      throw RPCError("22P02", "invalid input syntax for type uuid: argument \(name)")
    }
    return text.lowercased()
  }
}
