import HostKit

extension StackRequest {
  /// The token of an `Authorization: Bearer …` header.
  package var bearerToken: String? {
    guard let header = header("authorization") else { return nil }
    let parts = header.split(separator: " ", omittingEmptySubsequences: true)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
    return String(parts[1])
  }

  /// A query parameter, decoded; the first of that name.
  package func parameter(_ name: String) -> String? {
    for pair in query.split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard PercentCoding.decode(parts[0]) == name else { continue }
      return PercentCoding.decode(parts.count == 2 ? parts[1] : "")
    }
    return nil
  }

  /// All query parameters in the order sent, decoded; a plus stands for a space.
  package var parameters: [(name: String, value: String)] {
    query.split(separator: "&").map { pair in
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { part in
        PercentCoding.decode(String(part.map { $0 == "+" ? " " : $0 }))
      }
      return (parts[0], parts.count == 2 ? parts[1] : "")
    }
  }
}
