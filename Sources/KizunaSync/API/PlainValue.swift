import Foundation
import HostKit

/// The crossing between the `Any` values of the public surface and `JSONValue`.
///
/// Swift's own types are told apart by their dynamic type first, so a `Bool` never becomes a number and an `Int64` never
/// a double. `NSNumber` is looked at last, by its Objective-C type, because it would answer to any of them.
enum PlainValue {
  /// - Throws: `LOCAL_UNSUPPORTED` naming where, for a type that JSON has no form for.
  static func json(from value: Any, at place: @autoclosure () -> String) throws -> JSONValue {
    switch value {
    case let value as JSONValue: return value
    case let value as String: return .string(value)
    case is NSNull: return .null
    default: break
    }
    if let number = try number(value, at: place()) { return number }
    switch value {
    case let array as [Any]:
      return .array(try array.map { try json(from: $0, at: place()) })
    case let object as [String: Any]:
      return .object(try object.mapValues { try json(from: $0, at: place()) })
    default: break
    }
    let mirror = Mirror(reflecting: value)
    if mirror.displayStyle == .optional {
      guard let child = mirror.children.first else { return .null }
      return try json(from: child.value, at: place())
    }
    switch value {
    case let value as Substring: return .string(String(value))
    case let value as UUID: return .string(value.uuidString.lowercased())
    default:
      throw KizunaSyncError(.localUnsupported, "\(place()): a value of type \(type(of: value)) cannot be stored")
    }
  }

  static func json(from object: [String: Any], at place: @autoclosure () -> String) throws -> [String: JSONValue] {
    var result: [String: JSONValue] = [:]
    result.reserveCapacity(object.count)
    for (key, value) in object { result[key] = try json(from: value, at: "\(place()).\(key)") }
    return result
  }

  private static func number(_ value: Any, at place: @autoclosure () -> String) throws -> JSONValue? {
    // `type(of:)` and not `as`: on Linux, as on Apple platforms, an NSNumber may answer to several casts.
    switch type(of: value) {
    case is Bool.Type: return (value as? Bool).map(JSONValue.bool)
    case is NSNumber.Type: return (value as? NSNumber).flatMap(number(boxed:))
    default: break
    }
    if let integer = value as? any BinaryInteger {
      return JSONNumber(lexeme: integer.description).map(JSONValue.number)
    }
    guard let real = value as? any BinaryFloatingPoint else {
      if let decimal = value as? Decimal { return JSONNumber(lexeme: decimal.description).map(JSONValue.number) }
      return nil
    }
    guard let finite = JSONNumber(real as? Double ?? Double(real)) else {
      throw KizunaSyncError(.localUnsupported, "\(place()): an infinite or undefined number cannot be stored")
    }
    return .number(finite)
  }

  private static func number(boxed: NSNumber) -> JSONValue? {
    switch UInt8(bitPattern: boxed.objCType.pointee) {
    case UInt8(ascii: "c") where boxed === (true as NSNumber) || boxed === (false as NSNumber), UInt8(ascii: "B"):
      return .bool(boxed.boolValue)
    case UInt8(ascii: "f"), UInt8(ascii: "d"):
      return JSONNumber(boxed.doubleValue).map(JSONValue.number)
    case UInt8(ascii: "Q"):
      return JSONNumber(lexeme: String(boxed.uint64Value)).map(JSONValue.number)
    default:
      return .number(JSONNumber(boxed.int64Value))
    }
  }

  /// Objects become `[String: Any]`, arrays `[Any]`, null `NSNull`. A number is an `Int` when it is an integer that fits,
  /// a `Double` when that prints back to the same value, else its digits as a `String`.
  static func any(from value: JSONValue) -> Any {
    switch value {
    case .null: NSNull()
    case .bool(let value): value
    case .string(let value): value
    case .number(let number): any(from: number)
    case .array(let values): values.map(any(from:))
    case .object(let members): members.mapValues(any(from:))
    }
  }

  private static func any(from number: JSONNumber) -> Any {
    if let integer = number.int64 { return Int(integer) }
    let double = number.double
    guard let shortest = JSONNumber(double), DecimalValue(number) == DecimalValue(shortest) else {
      return number.lexeme
    }
    return double
  }
}
