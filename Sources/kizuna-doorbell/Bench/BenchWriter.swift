import HostKit

/// The other device: pushes one row at a time with a bare HTTP client.
///
/// Used from one thread.
final class BenchWriter {
  private let http: BareHTTP
  private let owner: String
  private var number = 0

  init(url: String, key: String, token: String, owner: String) throws {
    http = try BareHTTP(
      url: url + "/rest/v1/rpc/push",
      headers: [
        "Authorization: Bearer \(token)", "apikey: \(key)", "Content-Type: application/json",
        "Accept: application/json", "Content-Profile: kizunasync",
      ])
    self.owner = owner
  }

  /// Inserts a row of the embedded server's table.
  func insert() throws {
    number += 1
    try push([insertion(pk: Self.uuid(number, kind: "e"), title: "row number \(number)")])
  }

  /// Inserts rows with random keys in one request.
  func insertMany(_ count: Int) throws {
    try push(
      (0..<count).map { _ in
        number += 1
        return insertion(pk: Self.random(), title: "row number \(number) of the bench")
      })
  }

  private func insertion(pk: String, title: String) -> JSONValue {
    [
      "mutation_id": .string(Self.uuid(number, kind: "f")), "table": "bench", "pk": .string(pk), "op": "insert",
      "columns": ["owner_id": .string(owner), "title": .string(title), "n": .int(number)],
    ]
  }

  /// Writes one cell of an existing row.
  func write(table: String, key: String, column: String, value: JSONValue) throws {
    number += 1
    try push([
      [
        "mutation_id": .string(Self.random()), "table": .string(table), "pk": .string(key), "op": "update",
        "columns": [column: value],
      ]
    ])
  }

  private func push(_ mutations: [JSONValue]) throws {
    let body: JSONValue = [
      "batch": ["atomic": false, "mutations": .array(mutations)], "last_mutation_id": nil, "schema_version": 1,
    ]
    let answer = try JSONValue(parsing: try http.post(JSONWriter.data(body)).answer)
    let verdicts = answer["verdicts"]?.arrayValue ?? []
    guard verdicts.count == mutations.count, verdicts.allSatisfy({ $0["verdict"] == "applied" }) else {
      let reason = verdicts.first { $0["verdict"] != "applied" }?["reason"]?.stringValue ?? "no verdict"
      throw CommandFailure(.failure, "the server refused a row of the bench: \(reason)")
    }
  }

  private static func uuid(_ number: Int, kind: Character) -> String {
    let digits = String(number, radix: 16)
    return "00000000-0000-4000-8000-\(kind)" + String(repeating: "0", count: 11 - digits.count) + digits
  }

  private static func random() -> String {
    var digits =
      String(UInt64.random(in: 0...UInt64.max), radix: 16) + String(UInt64.random(in: 0...UInt64.max), radix: 16)
    digits = String(repeating: "0", count: 32 - digits.utf8.count) + digits
    let d = Array(digits.utf8)
    func part(_ range: Range<Int>) -> String { String(decoding: d[range], as: UTF8.self) }
    return "\(part(0..<8))-\(part(8..<12))-4\(part(13..<16))-8\(part(17..<20))-\(part(20..<32))"
  }
}
