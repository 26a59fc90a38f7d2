import HostKit

/// A change of a cell that depends on its value at the server (Kizuna wire contract §5.1).
enum Transform {
  case increment(Decimal)
  case arrayUnion([JSONValue])
  case arrayRemove([JSONValue])

  /// Nil when the value has none of the three forms.
  init?(_ value: JSONValue) {
    switch value["op"]?.stringValue {
    case "increment":
      guard let by = value["by"], let amount = Self.amount(by) else { return nil }
      self = .increment(amount)
    case "arrayUnion":
      guard let values = Self.scalars(value["values"]) else { return nil }
      self = .arrayUnion(values)
    case "arrayRemove":
      guard let values = Self.scalars(value["values"]) else { return nil }
      self = .arrayRemove(values)
    default: return nil
    }
  }

  private static func amount(_ by: JSONValue) -> Decimal? {
    if let number = by.numberValue { return number.isInteger ? Decimal(number.lexeme) : nil }
    return by.stringValue.flatMap(plainInteger)
  }

  /// Text of the form `-?(0|[1-9][0-9]*)`.
  private static func plainInteger(_ text: String) -> Decimal? {
    guard let decimal = Decimal(text), decimal.isInteger, decimal.description == text || text == "-0" else {
      return nil
    }
    return decimal
  }

  private static func scalars(_ values: JSONValue?) -> [JSONValue]? {
    guard let values = values?.arrayValue, !values.isEmpty else { return nil }
    let scalar = values.allSatisfy { $0.arrayValue == nil && $0.objectValue == nil }
    return scalar ? values : nil
  }

  /// The cell's new value; nil when the column cannot take this transform. Null and missing count as 0 or as empty.
  func applied(to cell: JSONValue, type: ColumnType?) -> JSONValue? {
    switch self {
    case .increment(let amount): Self.sum(cell, amount, type: type)
    case .arrayUnion(let values):
      Self.elements(cell, values, type: type).map { present, values in
        .array(values.reduce(into: present) { if !$0.contains($1) { $0.append($1) } })
      }
    case .arrayRemove(let values):
      Self.elements(cell, values, type: type).map { present, values in
        .array(present.filter { !values.contains($0) })
      }
    }
  }

  private static func sum(_ cell: JSONValue, _ amount: Decimal, type: ColumnType?) -> JSONValue? {
    switch type {
    case .smallint, .integer, .bigint, .numeric:
      guard let type, let before = decimal(cell) else { return nil }
      return try? type.cast(.string((before + amount).description))
    case .double:
      guard let before = cell.isNull ? 0 : cell.numberValue?.double, let by = Double(amount.description) else {
        return nil
      }
      return JSONNumber(before + by).map(JSONValue.number)
    case nil:
      // Without a type the cell decides: a number, or digits, which is how the protocol writes large integers.
      guard let before = cell.stringValue.map(plainInteger) ?? decimal(cell) else { return nil }
      let sum = before + amount
      guard let number = JSONNumber(lexeme: sum.description) else { return nil }
      return sum.isBelow2To31 || !sum.isInteger ? .number(number) : .string(sum.description)
    default: return nil
    }
  }

  private static func decimal(_ cell: JSONValue) -> Decimal? {
    cell.isNull ? Decimal("0") : cell.numberValue.flatMap { Decimal($0.lexeme) }
  }

  private static func elements(
    _ cell: JSONValue, _ values: [JSONValue], type: ColumnType?
  ) -> (present: [JSONValue], values: [JSONValue])? {
    guard let present = cell.isNull ? [] : cell.arrayValue else { return nil }
    guard let type else { return (present, values) }
    guard type == .textArray, let cast = try? type.cast(.array(values)).arrayValue else { return nil }
    return (present, cast)
  }
}
