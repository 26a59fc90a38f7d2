extension JSONCursor {
  /// Builds the value that starts here without the members that no value can hold: nested too deep, or with names that
  /// Swift takes for one. For answers of which the rest matters.
  ///
  /// - Parameter levels: how far down members are left out one by one. What cannot be held below that is left out whole.
  /// - Throws: `JSONSyntaxError` for what is no JSON, and where nothing can be left out.
  public mutating func readValue(leavingOutDownTo levels: Int) throws -> JSONValue {
    var probe = self
    if let value = try? probe.readValue() {
      self = probe
      return value
    }
    switch peek() {
    case UInt8(ascii: "{") where levels > 0:
      var object: [String: JSONValue] = [:]
      try forEachMember { name, cursor in
        var probe = cursor
        guard let value = try? probe.readValue(leavingOutDownTo: levels - 1) else {
          try cursor.skipValue()
          return
        }
        cursor = probe
        // As in any object the last of equal names counts; of those that are two the first is kept.
        let known = object.index(forKey: name).map { object.keys[$0] }
        if known?.utf8.elementsEqual(name.utf8) ?? true { object[name] = value }
      }
      return .object(object)
    case UInt8(ascii: "[") where levels > 0:
      var array: [JSONValue] = []
      try forEachElement { array.append(try $0.readValue(leavingOutDownTo: levels - 1)) }
      return .array(array)
    default: return try readValue()
    }
  }
}
