import HTTPClient
import HostKit
import KizunaSyncTestSupport

/// The network between a client of a random program and its server.
final class ConvergenceTransport: HTTPTransport {
  private let world: ConvergenceWorld
  private let user: String
  private let index: Int
  /// The mutations that were sent, by id.
  private let sent = Locked<[String: String]>([:])
  /// What another program does while a request is under way.
  let meddle = Locked<(@Sendable () async throws -> Void)?>(nil)
  let problem = Locked<String?>(nil)

  init(_ world: ConvergenceWorld, user: String, index: Int) {
    self.world = world
    self.user = user
    self.index = index
  }

  func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard let body = request.json else { throw HTTPError(.other, "no body") }
    let meddle = meddle.withLock { $0 }
    let isCalm = world.isCalm
    try await meddle?()
    world.note("\(index): sent \(JSONWriter.text(body))")
    checkBodies(body)
    if !isCalm, world.random({ $0.chance(10) }) { throw HTTPError(.connectionLost, "the request was lost") }
    let isRepeated = !isCalm && world.random { $0.chance(10) }
    let answer = try await world.server.answer(request, from: user, isRepeated: isRepeated, in: world)
    world.note("\(index): answered \(answer.status) \(String(decoding: answer.body, as: UTF8.self))")
    if !isCalm, world.random({ $0.chance(15) }) { throw HTTPError(.connectionLost, "the answer was lost") }
    if answer.status == 200, let json = try? JSONValue(parsing: answer.body) { world.noteAnswer(json) }
    try await meddle?()
    return answer
  }

  /// A mutation that is sent again is sent as it was: under one id a transform cannot count twice.
  private func checkBodies(_ body: JSONValue) {
    world.noteSent(body)
    for mutation in body["batch"]?["mutations"]?.arrayValue ?? [] {
      guard let id = mutation["mutation_id"]?.stringValue else { continue }
      let text = JSONWriter.text(mutation)
      let before = sent.withLock { $0.updateValue(text, forKey: id) }
      if let before, before != text { problem.withLock { $0 = "\(id) was sent as \(before), then as \(text)" } }
    }
  }
}
