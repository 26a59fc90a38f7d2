import Foundation
import HostKit
import Testing

@testable import KizunaSync

/// Rows as values of an app's own types: exact in both directions, and a value that does not fit is told by its column.
@Suite struct TypedRowsTests {
  private struct Everything: Codable, Equatable {
    enum Mood: String, Codable { case good, bad }
    struct Inner: Codable, Equatable {
      var list: [Int64?]
      var name: String?
    }

    var n: Int64
    var big: UInt64
    var price: Decimal
    var ratio: Double
    var flag: Bool
    var text: String
    var empty: String
    var missing: String?
    var at: Date
    var bytes: Data
    var who: UUID
    var site: URL
    var mood: Mood
    var inner: Inner
    var tags: [String]
  }

  private static func everything() throws -> Everything {
    Everything(
      n: 9_007_199_254_740_993, big: .max, price: try #require(Decimal(string: "12345678901234567890.123456789")),
      ratio: 0.1, flag: true, text: "a\u{0}\"é", empty: "", missing: nil,
      at: Date(timeIntervalSince1970: 1_800_000_000.123456), bytes: Data([0, 127, 255]),
      who: try #require(UUID(uuidString: "0B6C0000-0000-4000-8000-00000000000A")),
      site: try #require(URL(string: "https://example.com/a?b=c")), mood: .bad,
      inner: .init(list: [1, nil, .min], name: nil), tags: ["x,y", ""])
  }

  @Test func aValueIsTheSameAfterTheReplica() async throws {
    let client = KizunaSyncClient()
    try await client.create(
      .init(
        tables: [
          "facts": .init(
            key: ["n"], columns: ["price": .numeric, "flag": .boolean, "inner": .json, "tags": .json, "big": .numeric])
        ]))
    let table = try client.from("facts")
    let value = try Self.everything()
    try await table.insert(value)
    #expect(try await table.select().execute(as: Everything.self) == [value])
    #expect(try await table.select().single(as: Everything.self) == value)
    #expect(try await table.select().eq("text", "none").maybeSingle(as: Everything.self) == nil)
    // A property that is nil was left out; the texts are what PostgreSQL would write.
    let row = try #require(try await table.select().single() as? [String: Any])
    #expect(row["missing"] == nil || row["missing"] is NSNull)
    #expect(row["price"] as? String == "12345678901234567890.123456789")
    #expect(row["who"] as? String == "0b6c0000-0000-4000-8000-00000000000a")
    #expect(row["bytes"] as? String == #"\x007fff"#)
    #expect(row["at"] as? String == "2027-01-15T08:00:00.123456Z")
    await client.dispose()
  }

  private struct Partial: Codable, Equatable {
    var n: Int
    var t: String?
    var x: Double?
  }

  private func facts() async throws -> KizunaSyncTable {
    let client = KizunaSyncClient()
    try await client.create(.init(tables: ["facts": .init(key: ["n"])]))
    return try client.from("facts")
  }

  @Test func aNilPropertyIsNotWritten() async throws {
    let table = try await facts()
    try await table.insert(["n": 1, "t": "one", "x": 1.5])
    let after = try await table.update(Changes(x: 2.5)).eq("n", 1).select().execute(as: Partial.self)
    #expect(after == [Partial(n: 1, t: "one", x: 2.5)])
    let gone = try await table.delete().eq("n", 1).select("n,t").maybeSingle(as: Partial.self)
    #expect(gone == Partial(n: 1, t: "one", x: nil))
  }

  private struct Changes: Encodable {
    var t: String?
    var x: Double?
  }

  /// Overloads: a dictionary is a dictionary, whatever its values are.
  @Test func dictionariesTakeTheWayOfAny() async throws {
    let table = try await facts()
    try await table.insert(["n": 1])
    let texts: [String: String] = ["t": "one"]
    try await table.update(texts).eq("n", 1).execute()
    try await table.update(["x": 2]).eq("n", 1).execute()
    #expect(try await table.select().execute(as: Partial.self) == [Partial(n: 1, t: "one", x: 2)])
  }

  @Test func aCountHasNoPlaceInTypedRows() async throws {
    let table = try await facts()
    for read in [table.select(count: .exact), table.select(head: true)] {
      let error = await #expect(throws: KizunaSyncError.self) { try await read.execute(as: Partial.self) }
      #expect(error?.code == "LOCAL_UNSUPPORTED")
    }
  }

  // MARK: What does not fit

  private struct Box<Inner: Decodable>: Decodable { var c: Inner }

  private func decode<Value: Decodable>(_ type: Value.Type, _ json: String) throws -> Value {
    let row = try #require(try JSONValue(parsing: #"{"c": \#(json)}"#).objectValue)
    return try RowDecoder.decode(Box<Value>.self, from: row, table: "todos").c
  }

  private func refuses<Value: Decodable>(
    _ type: Value.Type, _ json: String, saying words: String = "todos",
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let error = #expect(throws: KizunaSyncError.self, sourceLocation: sourceLocation) { try decode(type, json) }
    #expect(error?.code == "JSON", sourceLocation: sourceLocation)
    let text = error?.message ?? ""
    #expect(text.hasPrefix("todos: the column c") && text.contains(words), "\(text)", sourceLocation: sourceLocation)
    // What a row holds is not shown.
    let shown = json.filter { $0.isNumber || $0.isLetter }
    #expect(shown.count < 5 || json == "null" || !text.contains(shown), "\(text)", sourceLocation: sourceLocation)
  }

  @Test func numbersFitExactlyOrNot() throws {
    #expect(try decode(Int64.self, "9223372036854775807") == .max)
    #expect(try decode(Int64.self, "-9223372036854775808") == .min)
    #expect(try decode(Int64.self, #""9007199254740993""#) == 9_007_199_254_740_993)
    #expect(try decode(UInt64.self, "18446744073709551615") == .max)
    #expect(try decode(Int.self, "5.00") == 5)
    #expect(try decode(Int.self, "-0") == 0)
    #expect(try decode(Int.self, "1e3") == 1000)
    refuses(Int64.self, "9223372036854775808", saying: "holds a number that is no exact Int64")
    refuses(Int8.self, "128")
    refuses(UInt.self, "-1")
    refuses(Int.self, "5.5")
    refuses(Int.self, "9007199254740993.5")
    refuses(Int.self, "true", saying: "holds a boolean")
    refuses(Int.self, #""12x45""#, saying: "holds a text")

    #expect(try decode(Double.self, "0.1") == 0.1)
    #expect(try decode(Double.self, "0.10") == 0.1)
    #expect(try decode(Double.self, "9007199254740992") == 9_007_199_254_740_992)
    #expect(try decode(Float.self, "0.1") == 0.1)
    refuses(Double.self, "9007199254740993")
    refuses(Double.self, "12345678901234567890.123456789")
    refuses(Double.self, "1e999")
    refuses(Float.self, "0.123456789")

    #expect(try decode(Decimal.self, "0.10") == Decimal(string: "0.1"))
    #expect(
      try decode(Decimal.self, #""12345678901234567890.123456789""#).description == "12345678901234567890.123456789")
    #expect(try decode(Decimal.self, "99999999999999999999999999999999999999").description.count == 38)
    refuses(Decimal.self, "1234567890123456789012345678901234567890123")
    refuses(Decimal.self, #""0x10ab""#)
    #expect(try decode(String.self, "12345678901234567890.1234567890") == "12345678901234567890.1234567890")
  }

  @Test func booleansTextsAndNulls() throws {
    #expect(try decode(Bool.self, "true") && !decode(Bool.self, "false"))
    #expect(try decode(Bool.self, "1") && !decode(Bool.self, "0"))
    refuses(Bool.self, "2")
    refuses(Bool.self, #""true""#)
    #expect(try decode(String.self, #""""#).isEmpty)
    refuses(String.self, "null", saying: "is null")
    refuses(String.self, "[1]", saying: "holds an array")
    #expect(try decode(Optional<String>.self, "null") == nil)
    #expect(try decode([Int?].self, "[1,null]") == [1, nil])
    #expect(try decode([String: [Bool]].self, #"{"a":[true]}"#) == ["a": [true]])
    refuses([String: [Bool]].self, #"{"a":[true,"abcdef"]}"#, saying: "the column c.a[1] holds a text")
    refuses([Int].self, #"{"a":1}"#, saying: "holds an object")
    refuses(UUID.self, #""0b6c0000""#)
  }

  @Test func aMissingColumnIsNotANullOne() throws {
    struct Row: Decodable { var title: String }
    for (json, words) in [("{}", "is missing"), (#"{"title":null}"#, "is null")] {
      let row = try #require(try JSONValue(parsing: json).objectValue)
      let error = #expect(throws: KizunaSyncError.self) { try RowDecoder.decode(Row.self, from: row, table: "todos") }
      #expect(error?.message == "todos: the column title \(words); adapt Row or the column")
    }
  }

  /// What Swift's own initialisers say quotes the value.
  @Test func theAppsOwnRefusalsAreToldWithoutTheValue() throws {
    refuses(Everything.Mood.self, #""surprise""#)
    struct Picky: Decodable {
      struct Refusal: Error {}
      init(from decoder: any Decoder) throws { throw Refusal() }
    }
    let error = #expect(throws: KizunaSyncError.self) {
      try RowDecoder.decode(Picky.self, from: [:], table: "todos")
    }
    #expect(error?.message == "todos: Picky refused a row with an error of type Refusal")
  }

  @Test func whatCannotBeStoredIsToldByItsColumn() async throws {
    let table = try await facts()
    struct Bad: Encodable {
      var n = 1
      var inner = ["a": Double.nan]
    }
    for write in [{ try await table.insert(Bad()) }, { _ = try await table.update(Bad()).eq("n", 1).execute() }] {
      let error = await #expect(throws: KizunaSyncError.self) { try await write() }
      #expect(error?.code == "LOCAL_UNSUPPORTED")
      #expect(
        error?.message == "facts: the column inner.a holds an infinite or undefined number; adapt Bad or the column")
    }
    let error = await #expect(throws: KizunaSyncError.self) { try await table.insert([1, 2]) }
    #expect(error?.message.contains("must be an object") == true)
    let far = await #expect(throws: KizunaSyncError.self) {
      try await table.insert(["at": Date.distantFuture.addingTimeInterval(1e12)] as Dates)
    }
    #expect(far?.message.contains("the column at holds a date out of range") == true)
  }

  private struct Dates: Encodable, ExpressibleByDictionaryLiteral {
    var values: [String: Date]
    init(dictionaryLiteral elements: (String, Date)...) {
      values = Dictionary(uniqueKeysWithValues: elements)
    }
    func encode(to encoder: any Encoder) throws { try values.encode(to: encoder) }
  }

  @Test func classesWithAParent() throws {
    class Base: Codable { var a = 1 }
    final class Derived: Base {
      var b = 2
      override init() { super.init() }
      private enum CodingKeys: String, CodingKey { case b }
      required init(from decoder: any Decoder) throws {
        b = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .b)
        try super.init(from: decoder)
      }
      override func encode(to encoder: any Encoder) throws {
        try super.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(b, forKey: .b)
      }
    }
    let row = try RowEncoder.encode(Derived(), table: "t")
    #expect(row == ["a": 1, "b": 2])
    let back = try RowDecoder.decode(Derived.self, from: ["a": 3, "b": 4], table: "t")
    #expect(back.a == 3 && back.b == 4)
  }
}
