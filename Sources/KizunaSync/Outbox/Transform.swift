import HostKit

/// A change the server computes (Kizuna wire contract §5.1), shown locally as if it had.
enum Transform: Equatable {
  case increment(by: String)
  case arrayUnion([JSONValue])
  case arrayRemove([JSONValue])

  /// - Throws: `LOCAL_UNSUPPORTED` for anything but the three forms.
  init(_ value: JSONValue, column: String) throws {
    let op = value["op"]?.stringValue
    switch op {
    case "increment":
      guard let by = Self.integer(value["by"]) else {
        throw KizunaSyncError(.localUnsupported, "the increment of \(column) needs an integer in \"by\"")
      }
      self = .increment(by: by)
    case "arrayUnion", "arrayRemove":
      guard let values = value["values"]?.arrayValue, !values.isEmpty, values.allSatisfy(Self.isScalar) else {
        throw KizunaSyncError(
          .localUnsupported, "\(op ?? "") of \(column) needs at least one text, number, boolean or null in \"values\"")
      }
      self = op == "arrayUnion" ? .arrayUnion(values) : .arrayRemove(values)
    default:
      throw KizunaSyncError(
        .localUnsupported, "the transform of \(column) must have \"op\" increment, arrayUnion or arrayRemove")
    }
  }

  /// The wire form: integers of magnitude 2³¹ and more travel as text.
  var wire: JSONValue {
    switch self {
    case .increment(let by): ["op": "increment", "by": Self.json(integer: by)]
    case .arrayUnion(let values): ["op": "arrayUnion", "values": .array(values)]
    case .arrayRemove(let values): ["op": "arrayRemove", "values": .array(values)]
    }
  }

  /// The new cell.
  /// - Throws: `LOCAL_CONSTRAINT` for an array operation on something else. An increment leaves other cells alone.
  func applied(to cell: JSONValue?, column: String) throws -> JSONValue? {
    switch self {
    case .increment(let by):
      if cell == nil || cell == .null { return Self.json(integer: by) }
      guard let current = Self.integer(cell) else { return cell }
      return Self.json(integer: DecimalSum.add(current, by))
    case .arrayUnion(let values):
      var members = try Self.members(cell, column: column)
      for value in values where !members.contains(value) { members.append(value) }
      return .array(members)
    case .arrayRemove(let values):
      return .array(try Self.members(cell, column: column).filter { !values.contains($0) })
    }
  }

  /// Applies what was queued over whatever the row holds now. Never fails: the server will say no.
  static func applyLeniently(_ transforms: RowMap, to row: inout RowMap) {
    for (column, value) in transforms {
      guard let transform = try? Transform(value, column: column) else { continue }
      if let cell = try? transform.applied(to: row[column], column: column) { row[column] = cell }
    }
  }

  private static func members(_ cell: JSONValue?, column: String) throws -> [JSONValue] {
    switch cell {
    case nil, .null?: return []
    case .array(let members)?: return members
    default: throw KizunaSyncError(.localConstraint, "\(column) does not hold an array")
    }
  }

  private static func isScalar(_ value: JSONValue) -> Bool {
    switch value {
    case .array, .object: false
    default: true
    }
  }

  /// The digits of an integer given as a number or as text in the canonical form.
  private static func integer(_ value: JSONValue?) -> String? {
    switch value {
    case .number(let number)? where number.isInteger: number.lexeme
    case .string(let text)?:
      JSONNumber(lexeme: text).flatMap { $0.isInteger ? text : nil }
    default: nil
    }
  }

  private static func json(integer: String) -> JSONValue {
    if let value = Int64(integer), value.magnitude < 1 << 31 { return .int(value) }
    return .string(integer)
  }
}

/// Addition of integers of any length, as decimal digits.
enum DecimalSum {
  static func add(_ left: String, _ right: String) -> String {
    if let left = Int64(left), let right = Int64(right) {
      let (sum, overflow) = left.addingReportingOverflow(right)
      if !overflow { return String(sum) }
    }
    let (leftDigits, leftNegative) = split(left)
    let (rightDigits, rightNegative) = split(right)
    if leftNegative == rightNegative { return join(sum(leftDigits, rightDigits), leftNegative) }
    return isSmaller(leftDigits, rightDigits)
      ? join(difference(rightDigits, leftDigits), rightNegative)
      : join(difference(leftDigits, rightDigits), leftNegative)
  }

  /// Digits, least first.
  private static func split(_ text: String) -> ([UInt8], Bool) {
    (text.utf8.reversed().filter { $0 != 0x2D }.map { $0 - 0x30 }, text.utf8.first == 0x2D)
  }

  private static func join(_ digits: [UInt8], _ negative: Bool) -> String {
    var digits = digits
    while digits.count > 1, digits.last == 0 { digits.removeLast() }
    let sign: [UInt8] = negative && digits != [0] ? [0x2D] : []
    return String(decoding: sign + digits.reversed().map { $0 + 0x30 }, as: UTF8.self)
  }

  private static func isSmaller(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count != right.count
      ? left.count < right.count : left.reversed().lexicographicallyPrecedes(right.reversed())
  }

  private static func sum(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
    var carry: UInt8 = 0
    var result: [UInt8] = []
    for index in 0..<max(left.count, right.count) {
      let total = (index < left.count ? left[index] : 0) + (index < right.count ? right[index] : 0) + carry
      result.append(total % 10)
      carry = total / 10
    }
    return carry == 0 ? result : result + [carry]
  }

  /// `left` must not be smaller than `right`.
  private static func difference(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
    var borrow: Int8 = 0
    return left.indices.map { index in
      var digit = Int8(left[index]) - borrow - (index < right.count ? Int8(right[index]) : 0)
      borrow = digit < 0 ? 1 : 0
      if digit < 0 { digit += 10 }
      return UInt8(digit)
    }
  }
}
