import Foundation
import HostKit
import Testing

@testable import KizunaSync

/// Rows take the form that Foundation's JSON coders give, for every way a type can write and read itself.
@Suite struct TypedRowsCodingTests {
  /// Every width, alone, in a list, missing, and at its ends.
  private struct Widths: Codable, Equatable {
    var i: Int
    var i8: Int8
    var i16: Int16
    var i32: Int32
    var i64: Int64
    var u: UInt
    var u8: UInt8
    var u16: UInt16
    var u32: UInt32
    var u64: UInt64
    var f: Float
    var d: Double
    var b: Bool
    var none: Int16?
    var is8: [Int8]
    var is16: [Int16]
    var is32: [Int32]
    var is64: [Int64]
    var isAny: [Int]
    var us8: [UInt8]
    var us16: [UInt16]
    var us32: [UInt32]
    var us64: [UInt64]
    var usAny: [UInt]
    var fs: [Float]
    var ds: [Double?]
    var bs: [Bool]
    var ts: [String]

    static let least = Widths(
      i: .min, i8: .min, i16: .min, i32: .min, i64: .min, u: 0, u8: 0, u16: 0, u32: 0, u64: 0, f: -0.25, d: -1e-300,
      b: false, none: nil, is8: [.min, 0], is16: [.min], is32: [.min], is64: [.min], isAny: [.min], us8: [0], us16: [0],
      us32: [0], us64: [0], usAny: [], fs: [0.1], ds: [nil, 0.1], bs: [false], ts: ["", "a\u{0}"])
    static let most = Widths(
      i: .max, i8: .max, i16: .max, i32: .max, i64: .max, u: .max, u8: .max, u16: .max, u32: .max, u64: .max,
      f: 16_777_216, d: 1e300, b: true, none: -3, is8: [.max], is16: [.max], is32: [.max], is64: [.max], isAny: [.max],
      us8: [.max], us16: [.max], us32: [.max], us64: [.max], usAny: [.max], fs: [], ds: [], bs: [true], ts: [])
  }

  /// Containers asked for by hand.
  private struct Manual: Codable, Equatable {
    var name: String
    var pairs: [[Int]]
    var note: String?
    var last: Bool

    private enum Keys: String, CodingKey { case person, rows, note, rest }
    private enum PersonKeys: String, CodingKey { case name }

    init(name: String, pairs: [[Int]], note: String?, last: Bool) {
      (self.name, self.pairs, self.note, self.last) = (name, pairs, note, last)
    }

    func encode(to encoder: any Encoder) throws {
      var object = encoder.container(keyedBy: Keys.self)
      var person = object.nestedContainer(keyedBy: PersonKeys.self, forKey: .person)
      try person.encode(name, forKey: .name)
      var rows = object.nestedUnkeyedContainer(forKey: .rows)
      for pair in pairs {
        var row = rows.nestedUnkeyedContainer()
        for number in pair { try row.encode(number) }
        #expect(row.count == pair.count)
      }
      if let note { try object.encode(note, forKey: .note) } else { try object.encodeNil(forKey: .note) }
      var rest = object.nestedUnkeyedContainer(forKey: .rest)
      try rest.encodeNil()
      var inner = rest.nestedContainer(keyedBy: PersonKeys.self)
      try inner.encode(name, forKey: .name)
      try last.encode(to: rest.superEncoder())
    }

    init(from decoder: any Decoder) throws {
      let object = try decoder.container(keyedBy: Keys.self)
      #expect(Set(object.allKeys) == [.person, .rows, .note, .rest])
      name = try object.nestedContainer(keyedBy: PersonKeys.self, forKey: .person).decode(String.self, forKey: .name)
      var rows = try object.nestedUnkeyedContainer(forKey: .rows)
      pairs = []
      while !rows.isAtEnd {
        var row = try rows.nestedUnkeyedContainer()
        var pair: [Int] = []
        while !row.isAtEnd { pair.append(try row.decode(Int.self)) }
        pairs.append(pair)
      }
      note = try object.decodeNil(forKey: .note) ? nil : object.decode(String.self, forKey: .note)
      var rest = try object.nestedUnkeyedContainer(forKey: .rest)
      #expect(rest.count == 3)
      #expect(try rest.decodeNil())
      _ = try rest.nestedContainer(keyedBy: PersonKeys.self).decode(String.self, forKey: .name)
      #expect(try !rest.decodeNil())
      last = try Bool(from: rest.superDecoder())
    }
  }

  private class Base: Codable {
    var id: String
    init(id: String) { self.id = id }
  }

  private final class Derived: Base {
    var size: Int
    private enum Keys: String, CodingKey { case size, base }

    init(id: String, size: Int) {
      self.size = size
      super.init(id: id)
    }

    override func encode(to encoder: any Encoder) throws {
      var object = encoder.container(keyedBy: Keys.self)
      try object.encode(size, forKey: .size)
      try super.encode(to: object.superEncoder())
    }

    required init(from decoder: any Decoder) throws {
      let object = try decoder.container(keyedBy: Keys.self)
      size = try object.decode(Int.self, forKey: .size)
      try super.init(from: object.superDecoder())
    }
  }

  private struct Shapes: Codable, Equatable {
    enum Shape: Codable, Equatable {
      case point
      case circle(radius: Int)
      case box(Int, named: String)
    }
    var shapes: [Shape]
    var byName: [String: Shape]
    var byNumber: [Int: [String]]
    var deep: [[[Bool]]]
  }

  private func sameAsFoundation<Row: Codable>(_ row: Row) throws -> (mine: Row, theirs: Row) {
    let theirs = try JSONEncoder().encode(row)
    let mine = try RowEncoder.encode(row, table: "t")
    #expect(try JSONValue.object(mine) == JSONValue(parsing: theirs))
    guard case .object(let read) = try JSONValue(parsing: theirs) else { throw Mismatch() }
    return (try RowDecoder.decode(Row.self, from: read, table: "t"), try JSONDecoder().decode(Row.self, from: theirs))
  }

  private struct Mismatch: Error {}

  @Test func everyWidthKeepsItsValue() throws {
    for row in [Widths.least, .most] {
      let (mine, theirs) = try sameAsFoundation(row)
      #expect(mine == row && theirs == row)
    }
  }

  @Test func containersAskedForByHand() throws {
    for note in [nil, "n"] {
      let row = Manual(name: "a", pairs: [[1, 2], [], [3]], note: note, last: true)
      let (mine, theirs) = try sameAsFoundation(row)
      #expect(mine == row && theirs == row)
    }
  }

  @Test func aClassWritesItsBaseBesideIt() throws {
    let (mine, theirs) = try sameAsFoundation(Derived(id: "x", size: 3))
    #expect(mine.id == theirs.id && mine.size == theirs.size && mine.id == "x")
  }

  @Test func casesWithValuesAndDictionaries() throws {
    let row = Shapes(
      shapes: [.point, .circle(radius: 2), .box(1, named: "b")], byName: ["p": .point], byNumber: [3: ["c"]],
      deep: [[[true], []], []])
    let (mine, theirs) = try sameAsFoundation(row)
    #expect(mine == row && theirs == row)
  }

  private struct One<Value: Codable & Equatable>: Codable, Equatable {
    var list: [Value]
  }

  private func refusal<Value: Codable & Equatable>(_ type: Value.Type, _ list: JSONValue) -> String? {
    let error = #expect(throws: KizunaSyncError.self) {
      try RowDecoder.decode(One<Value>.self, from: ["list": list], table: "facts")
    }
    #expect(error?.code == "JSON")
    return error?.message
  }

  /// The place is named, and never the value.
  @Test func whatDoesNotFitIsToldByItsPlace() throws {
    for message in [
      refusal(Int8.self, [1, 128]), refusal(UInt16.self, [1, -7]), refusal(Int.self, [1, .number(JSONNumber(0.5)!)]),
      refusal(UInt32.self, [1, .null]), refusal(Bool.self, [true, "secret"]), refusal([Int].self, [[1], "secret"]),
    ] {
      #expect(try #require(message).contains("facts"))
      #expect(try #require(message).contains("list[1]") || #require(message).contains("list.1"))
      #expect(message?.contains("secret") == false && message?.contains("128") == false)
    }
  }

  private struct Broken: Codable, Equatable {
    struct Own: Error {}
    init() {}
    init(from decoder: any Decoder) throws { throw Own() }
    func encode(to encoder: any Encoder) throws { throw Own() }
  }

  /// An error of the app's own may quote the row, so only its type is told.
  @Test func anErrorOfTheTypeItselfIsNamedByItsType() {
    let reading = #expect(throws: KizunaSyncError.self) {
      try RowDecoder.decode(Broken.self, from: ["a": 1], table: "facts")
    }
    #expect(reading?.code == "JSON" && reading?.message.contains("Own") == true)
    let writing = #expect(throws: KizunaSyncError.self) { try RowEncoder.encode(Broken(), table: "facts") }
    #expect(writing?.code == "LOCAL_UNSUPPORTED" && writing?.message.contains("Own") == true)
  }

  @Test func numbersWithoutDigitsAreRefused() {
    func code(_ body: @autoclosure () throws -> RowMap) -> String? {
      let error = #expect(throws: KizunaSyncError.self) { try body() }
      return error?.code
    }
    #expect(code(try RowEncoder.encode(One(list: [Float.infinity]), table: "t")) == "LOCAL_UNSUPPORTED")
    #expect(code(try RowEncoder.encode(One(list: [Double.nan]), table: "t")) == "LOCAL_UNSUPPORTED")
    #expect(code(try RowEncoder.encode(["a", "b"], table: "t")) == "LOCAL_UNSUPPORTED")
  }
}
