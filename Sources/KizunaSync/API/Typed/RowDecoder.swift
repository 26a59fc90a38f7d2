import Foundation
import HostKit

/// Makes values of an app's type from rows, straight from the exact cells: digits never pass through a double, and no JSON
/// text is written in between.
struct RowDecoder: Decoder {
  let value: JSONValue
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(_ value: JSONValue, at path: [any CodingKey] = []) {
    self.value = value
    codingPath = path
  }

  /// - Throws: `KizunaSyncError` with `JSON`, naming the column.
  static func decode<Row: Decodable>(_ type: Row.Type, from row: RowMap, table: String) throws -> Row {
    do {
      return try RowDecoder(.object(row)).decode(type)
    } catch let mismatch as RowMismatch {
      throw mismatch.error(.json, table: table, type: type)
    } catch let error as DecodingError {
      throw mismatch(error).error(.json, table: table, type: type)
    } catch let error as KizunaSyncError {
      throw error
    } catch {
      // What an initialiser of the app's says may quote the row.
      throw KizunaSyncError(.json, "\(table): \(type) refused a row with an error of type \(Swift.type(of: error))")
    }
  }

  private static func mismatch(_ error: DecodingError) -> RowMismatch {
    switch error {
    case .keyNotFound(let key, let context): RowMismatch(context.codingPath + [key], "is missing")
    case .valueNotFound(_, let context): RowMismatch(context.codingPath, "is null")
    case .typeMismatch(_, let context), .dataCorrupted(let context):
      RowMismatch(context.codingPath, "holds a value its type does not take")
    @unknown default: RowMismatch([], "does not fit")
    }
  }

  /// Types whose own decoding would ask for another form than a row has.
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let exact: Any? =
      switch type {
      case is Decimal.Type: ExactScalar.decimal(value)
      case is Date.Type: ExactScalar.text(value).flatMap(TimestampText.date)
      case is Data.Type: ExactScalar.text(value).flatMap(BytesText.bytes)
      case is UUID.Type: ExactScalar.uuid(value)
      case is URL.Type: ExactScalar.url(value)
      default: try Value(from: self)
      }
    guard let exact = exact as? Value else { throw mismatch(type) }
    return exact
  }

  fileprivate func mismatch(_ type: Any.Type) -> RowMismatch {
    RowMismatch(codingPath, value.isNull ? "is null" : "\(ExactScalar.kind(value)) that is no exact \(type)")
  }

  fileprivate func scalar<Value>(_ found: Value?) throws -> Value {
    guard let found else { throw mismatch(Value.self) }
    return found
  }

  // MARK: Decoder

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .object(let members) = value else { throw mismatch([String: Any].self) }
    return KeyedDecodingContainer(Members(members: members, codingPath: codingPath))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard case .array(let elements) = value else { throw mismatch([Any].self) }
    return Elements(elements: elements, codingPath: codingPath)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }
}

extension RowDecoder: SingleValueDecodingContainer {
  func decodeNil() -> Bool { value.isNull }
  func decode(_ type: Bool.Type) throws -> Bool { try scalar(ExactScalar.bool(value)) }
  func decode(_ type: String.Type) throws -> String { try scalar(ExactScalar.text(value)) }
  func decode(_ type: Double.Type) throws -> Double { try scalar(ExactScalar.double(value)) }
  func decode(_ type: Float.Type) throws -> Float { try scalar(ExactScalar.float(value)) }
  func decode(_ type: Int.Type) throws -> Int { try integer(type) }
  func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
  func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
  func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
  func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
  func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }

  private func integer<Integer: FixedWidthInteger>(_ type: Integer.Type) throws -> Integer {
    try scalar(ExactScalar.integer(value, type))
  }
}

/// An object. A member that is missing and one that is null are told apart: the first is not contained.
private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let members: RowMap
  let codingPath: [any CodingKey]

  var allKeys: [Key] { members.keys.compactMap(Key.init(stringValue:)) }

  func contains(_ key: Key) -> Bool { members[key.stringValue] != nil }

  private func decoder(_ key: some CodingKey) throws -> RowDecoder {
    let path = codingPath + [key]
    guard let value = members[key.stringValue] else { throw RowMismatch(path, "is missing") }
    return RowDecoder(value, at: path)
  }

  func decodeNil(forKey key: Key) throws -> Bool { try decoder(key).decodeNil() }
  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try decoder(key).decode(type) }
  func decode(_ type: String.Type, forKey key: Key) throws -> String { try decoder(key).decode(type) }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try decoder(key).decode(type) }
  func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try decoder(key).decode(type) }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try decoder(key).decode(type) }
  func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try decoder(key).decode(type) }
  func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try decoder(key).decode(type) }
  func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try decoder(key).decode(type) }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try decoder(key).decode(type) }
  func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try decoder(key).decode(type) }
  func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try decoder(key).decode(type) }
  func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try decoder(key).decode(type) }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try decoder(key).decode(type) }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try decoder(key).decode(type) }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value { try decoder(key).decode(type) }

  func nestedContainer<Inner: CodingKey>(
    keyedBy type: Inner.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Inner> {
    try decoder(key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try decoder(key).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder { try decoder(PlainKey(stringValue: "super")) }
  func superDecoder(forKey key: Key) throws -> any Decoder { try decoder(key) }
}

/// An array.
private struct Elements: UnkeyedDecodingContainer {
  let elements: [JSONValue]
  let codingPath: [any CodingKey]
  var currentIndex = 0

  var count: Int? { elements.count }
  var isAtEnd: Bool { currentIndex >= elements.count }

  private func peek() throws -> RowDecoder {
    let path = codingPath + [PlainKey(intValue: currentIndex)]
    guard !isAtEnd else { throw RowMismatch(path, "is missing") }
    return RowDecoder(elements[currentIndex], at: path)
  }

  private mutating func take<Value>(_ body: (RowDecoder) throws -> Value) throws -> Value {
    let value = try body(peek())
    currentIndex += 1
    return value
  }

  mutating func decodeNil() throws -> Bool {
    guard try peek().decodeNil() else { return false }
    currentIndex += 1
    return true
  }

  mutating func decode(_ type: Bool.Type) throws -> Bool { try take { try $0.decode(type) } }
  mutating func decode(_ type: String.Type) throws -> String { try take { try $0.decode(type) } }
  mutating func decode(_ type: Double.Type) throws -> Double { try take { try $0.decode(type) } }
  mutating func decode(_ type: Float.Type) throws -> Float { try take { try $0.decode(type) } }
  mutating func decode(_ type: Int.Type) throws -> Int { try take { try $0.decode(type) } }
  mutating func decode(_ type: Int8.Type) throws -> Int8 { try take { try $0.decode(type) } }
  mutating func decode(_ type: Int16.Type) throws -> Int16 { try take { try $0.decode(type) } }
  mutating func decode(_ type: Int32.Type) throws -> Int32 { try take { try $0.decode(type) } }
  mutating func decode(_ type: Int64.Type) throws -> Int64 { try take { try $0.decode(type) } }
  mutating func decode(_ type: UInt.Type) throws -> UInt { try take { try $0.decode(type) } }
  mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try take { try $0.decode(type) } }
  mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try take { try $0.decode(type) } }
  mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try take { try $0.decode(type) } }
  mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try take { try $0.decode(type) } }
  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try take { try $0.decode(type) } }

  mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    try take { try $0.container(keyedBy: type) }
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try take { try $0.unkeyedContainer() }
  }

  mutating func superDecoder() throws -> any Decoder { try take { $0 } }
}
