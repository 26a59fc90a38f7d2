import Glibc
import HTTPClient
import HostKit
import Testing

extension CurlHTTPClientTests {
  @Test func aHundredRequestsAtOnceAllGetTheirOwnAnswer() async throws {
    try await with(server: { request, connection in
      connection.answer(200, request.target)
      return .keep
    }) { client, server in
      let url = server.url
      try await withThrowingTaskGroup(of: (Int, String).self) { group in
        for number in 0..<100 {
          group.addTask {
            let response = try await client.send(HTTPRequest(method: "GET", url: "\(url)/\(number)"))
            return (number, String(decoding: response.body, as: UTF8.self))
          }
        }
        var seen = 0
        for try await (number, body) in group {
          #expect(body == "/\(number)")
          seen += 1
        }
        #expect(seen == 100)
      }
      #expect(server.connectionCount <= 16)
    }
  }

  @Test func cancellingTheTaskEndsTheTransfer() async throws {
    let closed = AsyncStream.makeStream(of: Void.self)
    let arrived = AsyncStream.makeStream(of: Void.self)
    try await with(server: { request, connection in
      if request.target == "/fast" {
        connection.answer(200, "x")
        return .keep
      }
      arrived.continuation.yield()
      connection.waitForClose()
      closed.continuation.yield()
      return .close
    }) { client, server in
      let url = server.url
      let task = Task { try await client.send(HTTPRequest(method: "GET", url: url)) }
      var arrivals = arrived.stream.makeAsyncIterator()
      await arrivals.next()
      task.cancel()
      let result = await task.result
      #expect(throws: CancellationError.self) { try result.get() }
      var closes = closed.stream.makeAsyncIterator()
      await closes.next()
      let next = try await client.send(HTTPRequest(method: "GET", url: "\(url)/fast"))
      #expect(next.status == 200)
    }
  }

  @Test func aTaskCancelledBeforehandSendsNothing() async throws {
    try await with(server: { _, connection in
      connection.answer(200, "x")
      return .keep
    }) { client, server in
      let url = server.url
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await client.send(HTTPRequest(method: "GET", url: url))
      }
      let result = await task.result
      #expect(throws: CancellationError.self) { try result.get() }
      #expect(server.received.isEmpty)
    }
  }

  @Test func shutdownFailsWhatIsPendingAndWhatComesLater() async throws {
    let arrived = AsyncStream.makeStream(of: Void.self)
    try await with(server: { _, connection in
      arrived.continuation.yield()
      connection.waitForClose()
      return .close
    }) { client, server in
      let url = server.url
      let task = Task { try await client.send(HTTPRequest(method: "GET", url: url)) }
      var arrivals = arrived.stream.makeAsyncIterator()
      await arrivals.next()
      await client.shutdown()
      let pending = await failure { try await task.value }
      #expect(pending == HTTPError(.other, "the HTTP client was shut down"))
      let later = await failure { try await client.send(HTTPRequest(method: "GET", url: url)) }
      #expect(later == HTTPError(.other, "the HTTP client was shut down"))
      await client.shutdown()
    }
  }

  @Test func aClientThatIsLetGoEndsItsThread() async throws {
    let server = RawServer { _, connection in
      connection.answer(200, "x")
      return .keep
    }
    defer { server.stop() }
    let closed = AsyncStream.makeStream(of: Void.self)
    let watched = RawServer { _, connection in
      connection.answer(200, "x")
      connection.waitForClose()
      closed.continuation.yield()
      return .close
    }
    defer { watched.stop() }
    do {
      let client = CurlHTTPClient()
      _ = try await client.send(HTTPRequest(method: "GET", url: watched.url))
    }
    var closes = closed.stream.makeAsyncIterator()
    await closes.next()
  }

  @Test func droppedConnectionsAreNotUsedAgain() async throws {
    let arrived = AsyncStream.makeStream(of: Void.self)
    let gate = Gate()
    try await with(server: { request, connection in
      if request.target == "/slow" {
        arrived.continuation.yield()
        gate.wait()
      }
      connection.answer(200, "\(connection.number)")
      return .keep
    }) { client, server in
      func number(_ path: String) async throws -> String {
        let response = try await client.send(HTTPRequest(method: "GET", url: server.url + path))
        return String(decoding: response.body, as: UTF8.self)
      }
      let first = try await number("/")
      #expect(first == "1")
      client.dropConnections()
      #expect(try await number("/") == "2")
      #expect(try await number("/") == "2")
      // A request under way fails at once, not at its deadline.
      let slow = Task { try await number("/slow") }
      var arrivals = arrived.stream.makeAsyncIterator()
      await arrivals.next()
      client.dropConnections()
      let outcome = await slow.result
      gate.open()
      #expect(performing: { try outcome.get() }, throws: { ($0 as? HTTPError)?.kind == .connectionLost })
      #expect(try await number("/") == "3")
    }
  }
}
