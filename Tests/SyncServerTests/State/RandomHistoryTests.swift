import HostKit
import SyncServer
import Testing

/// Random histories: whatever happened, a client that pages through the changes ends with what it may see, an aborted
/// batch leaves nothing, and a saved state is the state.
@Suite struct RandomHistoryTests {
  typealias F = ServerFixture

  struct Generator: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state ^ (state >> 29)
    }
  }

  /// A client without writes of its own: rows by key.
  struct Replica {
    var rows: [String: JSONValue] = [:]
    var cursor = "0"

    /// One transfer, page by page, applied when it closes.
    mutating func pull(from server: inout F, limit: Int) {
      var (token, pages, budget) = (cursor, [RPCAnswer](), 10_000)
      while budget > 0 {
        budget -= 1
        let page = server.pull(token, limit: limit)
        if page.signal == "CHECKPOINT_EXPIRED" {
          (rows, token, pages) = ([:], "0", [])
          continue
        }
        pages.append(page)
        token = page.cursor ?? "?"
        if page.hasMore != true { break }
      }
      #expect(budget > 0, "the transfer ends")
      for page in pages {
        for row in page.json["rows"]?.arrayValue ?? [] { rows[row["pk"]?.stringValue ?? "?"] = row["row"] }
        for pk in page.tombstones { rows[pk] = nil }
      }
      cursor = token
    }
  }

  @Test(arguments: 1...60)
  func aPagingClientConverges(seed: Int) throws {
    var random = Generator(state: UInt64(seed))
    var server = F { $0.maxPullScan = Int.random(in: 2...9, using: &random) }
    var replica = Replica()
    var mutation = 0
    for _ in 0..<80 {
      let pk = "k\(Int.random(in: 1...7, using: &random))"
      switch Int.random(in: 0...11, using: &random) {
      case 0...3:
        let owner = Bool.random(using: &random) ? F.me : F.other
        try server.upsert(pk, ["n": .int(Int.random(in: 0...3, using: &random))], owner: owner)
      case 4: try server.delete(pk)
      case 5...6:
        mutation += 1
        _ = server.push([F.insert(mutation, pk, ["n": .int(mutation)])])
      case 7:
        let before = server.state.dump()
        mutation += 4
        let batch = [
          F.insert(mutation, pk, ["n": 5]), F.delete(mutation + 1, pk), F.update(mutation + 2, "k1", ["n": 6]),
          F.update(mutation + 3, "never", ["n": 7]),
        ]
        #expect(server.push(batch, atomic: true).json["batch"]?["outcome"] == "aborted")
        #expect(server.state.dump() == before)
      case 8 where seed % 3 == 0: server.state.reap(now: nil)
      case 9: server.state = try #require(SyncServerState(server.state.json, configuration: server.state.configuration))
      default: replica.pull(from: &server, limit: Int.random(in: 1...4, using: &random))
      }
    }
    replica.pull(from: &server, limit: 2)
    let visible = (1...7).reduce(into: [String: JSONValue]()) { visible, n in
      guard let row = server.state.row("todos", "k\(n)"), row["owner_id"] == .string(F.me) else { return }
      visible["k\(n)"] = .object(row)
    }
    #expect(replica.rows == visible)
  }
}
