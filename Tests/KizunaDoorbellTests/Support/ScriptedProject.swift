import Foundation
import HTTPClient
import HostKit
import KizunaSyncTestSupport
import SyncServer

/// A project without a network: sign-in, refresh and sync, with tokens of an hour by its own calendar, which is right
/// whatever the host's says. It refuses tokens that are over, and says in every answer what time it is.
final class ScriptedProject: HTTPTransport {
  static let user = "11111111-1111-4111-8111-111111111111"
  /// Seconds.
  static let lifetime: Int64 = 3_600

  private struct State {
    var signIns = 0
    var refreshes = 0
    var refusals = 0
    var lastToken = ""
    var refreshToken = ""
  }

  let server: SyncServer
  let sync: SyncServerTransport
  private let clock: VirtualClock
  private let beginning: (now: UInt64, seconds: Int64)
  private let state = Locked(State())

  init(clock: VirtualClock) {
    self.clock = clock
    beginning = (clock.now, clock.wallMilliseconds / 1_000)
    server = SyncServer(
      configuration: SyncServerConfiguration(tables: [
        "todos": SyncTable(bucketColumn: "owner_id", includesKeyColumns: true)
      ]))
    sync = SyncServerTransport(server)
  }

  /// By the project's calendar, seconds since 1970.
  var seconds: Int64 { beginning.seconds + Int64((clock.now - beginning.now) / 1_000_000_000) }
  var signIns: Int { state.withLock { $0.signIns } }
  var refreshes: Int { state.withLock { $0.refreshes } }
  /// Calls of sync with a token that was over.
  var refusals: Int { state.withLock { $0.refusals } }
  /// The newest it gave out.
  var lastToken: String { state.withLock { $0.lastToken } }
  /// Pulls so far.
  var pulls: Int { sync.bodies(of: "pull").count }

  /// A token that somebody else was given.
  func token(_ number: Int) -> String {
    TestToken.user(
      Self.user, issuedAt: seconds, expiresAt: seconds + Self.lifetime, claims: ["n": .int(number)])
  }

  nonisolated(nonsending) func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    var response = request.url.contains("/auth/v1/token") ? grant(request) : try await call(request)
    response.headers.append(HTTPHeader("Date", date))
    return response
  }

  private func call(_ request: HTTPRequest) async throws -> HTTPResponse {
    let words = request.header("Authorization")?.split(separator: " ") ?? []
    let end = words.last.flatMap { UnverifiedToken(String($0)) }?.expiresAt ?? 0
    guard seconds < end else {
      state.withLock { $0.refusals += 1 }
      return .json(["code": "PGRST303", "message": "JWT expired"], status: 401)
    }
    return try await sync.send(request)
  }

  private func grant(_ request: HTTPRequest) -> HTTPResponse {
    let given = request.json?["refresh_token"]?.stringValue
    return state.withLock { state -> HTTPResponse in
      if let given {
        guard given == state.refreshToken else {
          return .json(["code": 400, "error_code": "refresh_token_already_used", "msg": "used"], status: 400)
        }
        state.refreshes += 1
      } else {
        state.signIns += 1
      }
      let number = state.signIns + state.refreshes
      state.refreshToken = "r\(number)"
      state.lastToken = token(number)
      return .json([
        "access_token": .string(state.lastToken), "refresh_token": .string(state.refreshToken),
        "expires_in": .int(Int(Self.lifetime)),
      ])
    }
  }

  private var date: String {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(identifier: "GMT")
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return format.string(from: Date(timeIntervalSince1970: Double(seconds)))
  }
}
