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
    let id = Self.uuid(number, kind: "e")
    try push([
      "mutation_id": .string(Self.uuid(number, kind: "f")), "table": "bench", "pk": .string(id), "op": "insert",
      "columns": ["owner_id": .string(owner), "title": .string("row number \(number)"), "n": .int(number)],
    ])
  }

  /// Writes one cell of an existing row.
  func write(table: String, key: String, column: String, value: JSONValue) throws {
    number += 1
    try push([
      "mutation_id": .string(Self.random()), "table": .string(table), "pk": .string(key), "op": "update",
      "columns": [column: value],
    ])
  }

  private func push(_ mutation: JSONValue) throws {
    let body: JSONValue = [
      "batch": ["atomic": false, "mutations": [mutation]], "last_mutation_id": nil, "schema_version": 1,
    ]
    let answer = try JSONValue(parsing: try http.post(JSONWriter.data(body)).answer)
    guard answer["verdicts"]?[0]?["verdict"] == "applied" else {
      let reason = answer["verdicts"]?[0]?["reason"]?.stringValue ?? "no verdict"
      throw CommandFailure(.failure, "the server refused the row that was to ring: \(reason)")
    }
  }

  private static func uuid(_ number: Int, kind: Character) -> String {
    let digits = String(number, radix: 16)
    return "00000000-0000-4000-8000-\(kind)" + String(repeating: "0", count: 11 - digits.count) + digits
  }

  private static func random() -> String {
    let digits = (0..<32).map { _ in String(Int.random(in: 0..<16), radix: 16) }.joined()
    let d = Array(digits)
    return String(d[0..<8]) + "-" + String(d[8..<12]) + "-4" + String(d[13..<16]) + "-8" + String(d[17..<20]) + "-"
      + String(d[20..<32])
  }
}
