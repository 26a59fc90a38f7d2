import HostKit
import Testing

@testable import KizunaSync

@Suite struct PullPageTests {
  private func items(_ page: PullPage) throws -> [String] {
    var list: [String] = []
    try page.forEachItem { item, bytes in
      let row = item.row.map { String(decoding: bytes[$0], as: UTF8.self) } ?? "-"
      list.append("\(item.table) \(try item.key(in: bytes)) \(row)")
    } tombstones: { item, bytes in
      list.append("-\(item.table) \(try item.key(in: bytes))")
    }
    return list
  }

  @Test func membersComeInAnyOrderAndUnknownOnesAreIgnored() throws {
    let body = #"""
      {"tombstones":[{"deleted_at":"x","seq":"2","pk":"k\"2","table":"t"}], "new":{"a":[1]},
       "rows":[{"row":{"a" : 1},"seq":"1","table":"t","pk":"k1","x":null},{"table":"u","pk":"é","columns":{}}],
       "has_more":true,"cursor":"0:2"}
      """#
    let page = try PullPage(checking: Array(body.utf8))
    #expect(page.cursor == "0:2" && page.hasMore && page.signal == nil)
    #expect(page.rowCount == 2 && page.tombstoneCount == 1)
    #expect(try items(page) == [#"t k1 {"a" : 1}"#, "u é {}", "-t k\"2"])
  }

  @Test func aRowMarkedDeletedIsATombstone() throws {
    let body = #"{"cursor":"1","has_more":false,"rows":[{"table":"t","pk":"k","deleted":true,"row":{"a":1}}]}"#
    #expect(try items(PullPage(checking: Array(body.utf8))) == ["t k -"])
  }

  @Test(arguments: [
    "", "null", "{\"cursor\":\"1\"}", "{\"has_more\":false}", "{\"cursor\":1,\"has_more\":false}",
    "{\"cursor\":\"1\",\"has_more\":false,\"rows\":{}}", "{\"cursor\":\"1\",\"has_more\":false,\"rows\":[1]}",
    "{\"cursor\":\"1\",\"has_more\":false,\"rows\":[{\"table\":\"t\",\"pk\":\"\",\"row\":{}}]}",
    "{\"cursor\":\"1\",\"has_more\":false,\"tombstones\":[{\"pk\":\"k\"}]}",
    "{\"cursor\":\"1\",\"has_more\":false,\"conflicts\":[{}]}", "{\"cursor\":\"1\",\"has_more\":false} x",
  ])
  func aPageOfTheWrongShapeIsRefused(body: String) {
    let failure = #expect(throws: RemoteFailure.self) { try PullPage(checking: Array(body.utf8)) }
    #expect(failure?.error.code == "JSON")
  }
}
