#if Postgres
  import LocalStack

  /// What the `Prefer` headers of a request ask for.
  struct Preferences: Sendable, Hashable {
    enum Resolution: String, Sendable { case merge = "merge-duplicates", ignore = "ignore-duplicates" }

    private(set) var resolution: Resolution?
    private(set) var returnsRows = false
    private(set) var countsExactly = false
    /// What was understood, as it is told in the answer.
    private(set) var applied: [String] = []

    init(_ request: StackRequest) {
      let headers = request.headers.filter { $0.name.lowercased() == "prefer" }
      for word in headers.flatMap({ $0.value.split(separator: ",") }) {
        let word = word.filter { !$0.isWhitespace }
        switch word {
        case "return=representation": returnsRows = true
        case "return=minimal": returnsRows = false
        case "count=exact": countsExactly = true
        case "resolution=merge-duplicates": resolution = .merge
        case "resolution=ignore-duplicates": resolution = .ignore
        default: continue
        }
        applied.append(word)
      }
    }

    var headers: [StackHeader] {
      applied.isEmpty ? [] : [StackHeader("preference-applied", applied.joined(separator: ", "))]
    }
  }
#endif
