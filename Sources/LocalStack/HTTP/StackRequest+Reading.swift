import HostKit

extension StackRequest {
  /// The token of an `Authorization: Bearer …` header.
  var bearerToken: String? {
    guard let header = header("authorization") else { return nil }
    let parts = header.split(separator: " ", omittingEmptySubsequences: true)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
    return String(parts[1])
  }

  /// A query parameter, decoded; the first of that name.
  func parameter(_ name: String) -> String? {
    for pair in query.split(separator: "&") {
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard PercentCoding.decode(parts[0]) == name else { continue }
      return PercentCoding.decode(parts.count == 2 ? parts[1] : "")
    }
    return nil
  }
}
