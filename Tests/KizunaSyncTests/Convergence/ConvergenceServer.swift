import HTTPClient
import HostKit

@testable import KizunaSync

/// The server of a random program, and whoever writes to it besides the clients.
protocol ConvergenceServer: Sendable {
  /// Where clients find it.
  func remote(for user: String) -> KizunaSyncRemoteConfig

  /// Delivers a request once or, as a proxy may, twice; the answer to the first delivery is lost then.
  func answer(
    _ request: HTTPRequest, from user: String, isRepeated: Bool, in world: ConvergenceWorld
  ) async throws -> HTTPResponse

  /// What is committed, whoever may see it, by key.
  func rows(_ table: String) async throws -> [String: RowMap]

  /// What it shows to a user who has chosen a team.
  func shown(to user: String, team: String) async throws -> ShownRows

  /// What it has decided: a reason, or `applied`, by mutation id.
  func verdicts() async throws -> [String: String]

  /// Something that somebody else does.
  func disturb(_ random: inout SeededRandom, in world: ConvergenceWorld) async throws

  /// Forgets all tombstones.
  func reap() async throws

  /// Ends what others have begun.
  func settle(in world: ConvergenceWorld) async throws

  /// What it has done wrong, as far as it can tell.
  func problem() async throws -> String?

  func close() async
}

struct ShownRows {
  /// By table and key.
  var tables: [String: [String: RowMap]]
  /// Keys of `p` that a change of policy has shown or hidden, which no pull tells.
  var unannounced: Set<String> = []
}
