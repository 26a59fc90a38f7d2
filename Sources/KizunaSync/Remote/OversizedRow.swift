import HostKit

/// The first row of a page that was cut off.
struct OversizedRow: Sendable, Equatable {
  /// Nil when the server names it only after the row itself.
  var table: String?
  var pk: String

  /// Nil when the bytes end before the key.
  init?(head: [UInt8]) {
    var table: String?
    var pk: String?
    head.withUnsafeBytes { bytes in
      var reader = JSONCursor(bytes)
      // The bytes end in the middle of a value, so it always throws; what was read before counts.
      try? reader.forEachMember { name, value in
        guard name == "rows" else {
          try value.skipValue()
          return
        }
        try value.forEachElement { row in
          try row.forEachMember { name, member in
            switch name {
            case "table" where pk == nil || table == nil: table = try member.readString()
            case "pk" where pk == nil: pk = try member.readString()
            default: try member.skipValue()
            }
          }
        }
      }
    }
    guard let pk else { return nil }
    self.table = table
    self.pk = pk
  }
}
