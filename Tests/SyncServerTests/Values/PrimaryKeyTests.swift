import HostKit
import Testing

@testable import SyncServer

@Suite struct PrimaryKeyTests {
  @Test(arguments: [
    (["abc"], "abc"), ([#"["x"]"#], #"["x"]"#), (["1", "12"], #"["1", "12"]"#),
    ([#"q""#, "é/ü"], #"["q\"", "é/ü"]"#), (["\\", "\n\t\u{8}\u{C}\r\u{1}"], #"["\\", "\n\t\b\f\r\u0001"]"#),
    (["", "a,b", "c"], #"["", "a,b", "c"]"#),
  ])
  func spellsAsPostgresPrintsJSON(parts: [String], text: String) {
    #expect(PrimaryKey.spell(parts) == text)
    let columns = parts.indices.map { "k\($0)" }
    #expect(PrimaryKey.parts(of: text, columns: columns, types: [:]) == parts)
  }

  @Test(arguments: [
    #"["1","12"]"#, #"[ "1", "12"]"#, #"["1", 12]"#, #"["1"]"#, #"["1", "12", "3"]"#, #"["\u0031", "12"]"#, "1", "",
    #"["1", "12"] "#,
  ])
  func refusesOtherSpellings(text: String) {
    #expect(PrimaryKey.parts(of: text, columns: ["a", "b"], types: [:]) == nil)
  }

  @Test(
    arguments: [
      (.bigint, "7", true), (.bigint, "-7", true), (.bigint, "07", false), (.bigint, "+7", false),
      (.bigint, "x", false),
      (.smallint, "40000", false), (.uuid, "00000000-0000-4000-8000-a10000000001", true),
      (.uuid, "00000000-0000-4000-8000-A10000000001", false), (.text, "Any Text", true), (nil, "ANY", true),
    ] as [(ColumnType?, String, Bool)])
  func aPartMustBeCanonicalForItsType(type: ColumnType?, text: String, canonical: Bool) {
    let types = type.map { ["id": $0] } ?? [:]
    #expect((PrimaryKey.parts(of: text, columns: ["id"], types: types) != nil) == canonical)
  }
}
