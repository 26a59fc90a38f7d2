import Foundation
import HostKit

/// Takes values of an app's type apart into cells, digits as they are.
///
/// A property that is nil is left out, as synthesised conformances do: an update does not touch its column.
final class RowEncoder: Encoder {
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }
  private var content = Content.nothing

  private enum Content {
    case nothing
    case value(JSONValue)
    case members([String: RowEncoder])
    case elements([RowEncoder])
  }

  private init(at path: [any CodingKey]) {
    codingPath = path
  }

  /// - Throws: `KizunaSyncError` with `LOCAL_UNSUPPORTED`, naming the column.
  static func encode<Row: Encodable>(_ row: Row, table: String) throws -> RowMap {
    let encoder = RowEncoder(at: [])
    do {
      try encoder.store(row)
      guard case .object(let columns) = encoder.value else {
        throw RowMismatch([], "must be an object with a member for each column")
      }
      return columns
    } catch let mismatch as RowMismatch {
      throw mismatch.error(.localUnsupported, table: table, type: Row.self)
    } catch let error as KizunaSyncError {
      throw error
    } catch {
      throw KizunaSyncError(
        .localUnsupported, "\(table): \(Row.self) cannot be stored: an error of type \(type(of: error))")
    }
  }

  fileprivate var value: JSONValue {
    switch content {
    case .nothing: .object([:])
    case .value(let value): value
    case .members(let members): .object(members.mapValues(\.value))
    case .elements(let elements): .array(elements.map(\.value))
    }
  }

  fileprivate func set(_ value: JSONValue) { content = .value(value) }

  /// Types whose own encoding has another form than a row.
  fileprivate func store<Value: Encodable>(_ value: Value) throws {
    switch value {
    case let decimal as Decimal:
      guard let number = JSONNumber(lexeme: decimal.description) else { throw undefined }
      set(.number(number))
    case let date as Date:
      guard let text = TimestampText.text(date) else { throw RowMismatch(codingPath, "holds a date out of range") }
      set(.string(text))
    case let data as Data: set(.string(BytesText.text(data)))
    case let uuid as UUID: set(.string(uuid.uuidString.lowercased()))
    case let url as URL: set(.string(url.absoluteString))
    default: try value.encode(to: self)
    }
  }

  private var undefined: RowMismatch { RowMismatch(codingPath, "holds an infinite or undefined number") }

  fileprivate func store(integer: some FixedWidthInteger) throws {
    guard let number = JSONNumber(lexeme: String(integer)) else { throw undefined }
    set(.number(number))
  }

  fileprivate func store(double: Double) throws {
    guard let number = JSONNumber(double) else { throw undefined }
    set(.number(number))
  }

  /// Its own shortest digits, which are not those of the double beside it.
  fileprivate func store(float: Float) throws {
    guard let shortest = Double(float.description) else { throw undefined }
    try store(double: shortest)
  }

  fileprivate func member(_ key: some CodingKey) -> RowEncoder {
    let child = RowEncoder(at: codingPath + [key])
    var members: [String: RowEncoder] = [:]
    if case .members(let known) = content { members = known }
    members[key.stringValue] = child
    content = .members(members)
    return child
  }

  fileprivate func element() -> RowEncoder {
    var elements: [RowEncoder] = []
    if case .elements(let known) = content { elements = known }
    let child = RowEncoder(at: codingPath + [PlainKey(intValue: elements.count)])
    content = .elements(elements + [child])
    return child
  }

  fileprivate var elementCount: Int {
    if case .elements(let elements) = content { elements.count } else { 0 }
  }

  // MARK: Encoder

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    if case .nothing = content { content = .members([:]) }
    return KeyedEncodingContainer(Members(encoder: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    if case .nothing = content { content = .elements([]) }
    return Elements(encoder: self)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension RowEncoder: SingleValueEncodingContainer {
  func encodeNil() throws { set(.null) }
  func encode(_ value: Bool) throws { set(.bool(value)) }
  func encode(_ value: String) throws { set(.string(value)) }
  func encode(_ value: Double) throws { try store(double: value) }
  func encode(_ value: Float) throws { try store(float: value) }
  func encode(_ value: Int) throws { try store(integer: value) }
  func encode(_ value: Int8) throws { try store(integer: value) }
  func encode(_ value: Int16) throws { try store(integer: value) }
  func encode(_ value: Int32) throws { try store(integer: value) }
  func encode(_ value: Int64) throws { try store(integer: value) }
  func encode(_ value: UInt) throws { try store(integer: value) }
  func encode(_ value: UInt8) throws { try store(integer: value) }
  func encode(_ value: UInt16) throws { try store(integer: value) }
  func encode(_ value: UInt32) throws { try store(integer: value) }
  func encode(_ value: UInt64) throws { try store(integer: value) }
  func encode<Value: Encodable>(_ value: Value) throws { try store(value) }
}

private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoder: RowEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }

  func encodeNil(forKey key: Key) throws { try encoder.member(key).encodeNil() }
  func encode(_ value: Bool, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: String, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: Double, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: Float, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: Int, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: Int8, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: Int16, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: Int32, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: Int64, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: UInt, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: UInt8, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: UInt16, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: UInt32, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode(_ value: UInt64, forKey key: Key) throws { try encoder.member(key).encode(value) }
  func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try encoder.member(key).store(value) }

  func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type, forKey key: Key) -> KeyedEncodingContainer<Inner> {
    encoder.member(key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    encoder.member(key).unkeyedContainer()
  }

  func superEncoder() -> any Encoder { encoder.member(PlainKey(stringValue: "super")) }
  func superEncoder(forKey key: Key) -> any Encoder { encoder.member(key) }
}

private struct Elements: UnkeyedEncodingContainer {
  let encoder: RowEncoder
  var codingPath: [any CodingKey] { encoder.codingPath }
  var count: Int { encoder.elementCount }

  func encodeNil() throws { try encoder.element().encodeNil() }
  func encode(_ value: Bool) throws { try encoder.element().encode(value) }
  func encode(_ value: String) throws { try encoder.element().encode(value) }
  func encode(_ value: Double) throws { try encoder.element().encode(value) }
  func encode(_ value: Float) throws { try encoder.element().encode(value) }
  func encode(_ value: Int) throws { try encoder.element().encode(value) }
  func encode(_ value: Int8) throws { try encoder.element().encode(value) }
  func encode(_ value: Int16) throws { try encoder.element().encode(value) }
  func encode(_ value: Int32) throws { try encoder.element().encode(value) }
  func encode(_ value: Int64) throws { try encoder.element().encode(value) }
  func encode(_ value: UInt) throws { try encoder.element().encode(value) }
  func encode(_ value: UInt8) throws { try encoder.element().encode(value) }
  func encode(_ value: UInt16) throws { try encoder.element().encode(value) }
  func encode(_ value: UInt32) throws { try encoder.element().encode(value) }
  func encode(_ value: UInt64) throws { try encoder.element().encode(value) }
  func encode<Value: Encodable>(_ value: Value) throws { try encoder.element().store(value) }

  func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    encoder.element().container(keyedBy: type)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.element().unkeyedContainer() }
  func superEncoder() -> any Encoder { encoder.element() }
}
