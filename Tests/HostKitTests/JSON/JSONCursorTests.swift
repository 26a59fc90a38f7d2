import HostKit
import Testing

@Suite struct JSONCursorTests {
  private func walk<Result>(_ text: String, _ body: (inout JSONCursor) throws -> Result) rethrows -> Result {
    try Array(text.utf8).withUnsafeBytes { bytes in
      var cursor = JSONCursor(bytes)
      return try body(&cursor)
    }
  }

  @Test func handsOutByteRangesWithoutBuildingValues() throws {
    let text = #"{ "skip": [1, {"x": "}"}], "keep" : {"n": 1.50} , "end": 7 }"#
    var found: [String: String] = [:]
    try walk(text) { cursor in
      try cursor.forEachMember { name, cursor in
        let range = try cursor.skipValue()
        found[name] = String(decoding: Array(text.utf8)[range], as: UTF8.self)
      }
      try cursor.expectEnd()
    }
    #expect(found == ["skip": #"[1, {"x": "}"}]"#, "keep": #"{"n": 1.50}"#, "end": "7"])
  }

  @Test func mixesReadingAndSteppingOver() throws {
    var titles: [String] = []
    try walk(#"[{"id":1,"title":"a\n"},{"title":"b"},{}]"#) { cursor in
      try cursor.forEachElement { cursor in
        try cursor.forEachMember { name, cursor in
          if name == "title" { titles.append(try cursor.readString()) } else { try cursor.skipValue() }
        }
      }
    }
    #expect(titles == ["a\n", "b"])
  }

  @Test func tellsWhetherAStringIsItsOwnText() throws {
    #expect(try walk(#""plain é""#) { try $0.skipString() })
    #expect(try walk(#""with \n""#) { try $0.skipString() } == false)
  }

  @Test func repairsBytesThatAreNotUTF8() throws {
    let value = try JSONValue(parsing: [0x22, 0x61, 0xFF, 0x22])
    #expect(value == .string("a\u{FFFD}"))
  }

  @Test func errorsOfTheBodyPassThrough() {
    struct Mine: Error {}
    #expect(throws: Mine.self) {
      try walk("[1]") { cursor in try cursor.forEachElement { _ in throw Mine() } }
    }
  }
}
