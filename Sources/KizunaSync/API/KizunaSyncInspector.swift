import Foundation
import HostKit

/// What is queued and where the replica stands.
public struct KizunaSyncInspectorSnapshot: @unchecked Sendable {  // the values of `queued` are plain JSON values
  /// The queued writes in the order they will be sent.
  public let queued: [[String: Any]]
  public let depth: Int
  public let lastMutationId: String?
  public let cursor: String
  public let clientId: String
}

public enum KizunaSyncInspectorVerdictKind: String, Sendable {
  case rejected, aborted, overwritten
}

/// One decision against a local value.
public struct KizunaSyncInspectorVerdict: Equatable, Sendable {
  public let mutationId: String
  public let kind: KizunaSyncInspectorVerdictKind
  public let reason: String
  public let at: Date
}

/// A look inside a client for developers: the queue, and the newest fifty decisions against local values.
public final class KizunaSyncInspector: @unchecked Sendable {  // everything mutable is behind `state`
  private static let capacity = 50

  private struct State: Sendable {
    var verdicts: [KizunaSyncInspectorVerdict] = []
    var lastID: UInt64 = 0
    var listeners: [UInt64: Listener] = [:]
    var unsubscribe: (@Sendable () -> Void)?
  }

  private struct Listener: @unchecked Sendable {  // called on the client's delivery thread only
    var call: () -> Void
  }

  private weak var client: KizunaSyncClient?
  private let state = Locked(State())

  init(client: KizunaSyncClient) {
    self.client = client
  }

  deinit {
    state.withLock { $0.unsubscribe }?()
  }

  /// Listens to the client's current engine; called once at first and after every `create`.
  func follow() {
    let unsubscribe = try? client?.subscribe { [weak self] event in self?.note(event) }
    state.withLock { $0.unsubscribe = unsubscribe }
  }

  /// - Throws: `ENGINE_UNAVAILABLE` when the client is not open.
  public func snapshot() async throws -> KizunaSyncInspectorSnapshot {
    guard let client else { throw KizunaSyncError(.engineUnavailable, "the client is gone") }
    let parts = try await client.inspect()
    return KizunaSyncInspectorSnapshot(
      queued: parts["queued"] as? [[String: Any]] ?? [], depth: parts["depth"] as? Int ?? 0,
      lastMutationId: parts["last_mutation_id"] as? String, cursor: parts["cursor"] as? String ?? "0",
      clientId: parts["client_id"] as? String ?? "")
  }

  /// The newest decisions, oldest first; at most fifty.
  public func verdicts() -> [KizunaSyncInspectorVerdict] {
    state.withLock { $0.verdicts }
  }

  /// Calls `onChange` on the client's delivery thread after events that may change the snapshot or the verdicts.
  /// - Returns: a closure that ends the calls.
  public func subscribe(_ onChange: @escaping () -> Void) -> () -> Void {
    let listener = Listener(call: onChange)
    let id = state.withLock { state -> UInt64 in
      state.lastID += 1
      state.listeners[state.lastID] = listener
      return state.lastID
    }
    return { [weak self] in self?.state.withLock { $0.listeners[id] = nil } }
  }

  /// Forgets the decisions.
  public func clear() {
    state.withLock { $0.verdicts = [] }
  }

  private func note(_ event: KizunaSyncEngineEvent) {
    let verdict: (String, KizunaSyncInspectorVerdictKind, String)? =
      switch event {
      case .mutationRejected(let id, let reason), .deadLetter(let id, let reason): (id, .rejected, reason)
      case .batchAborted(let id, let reason): (id, .aborted, reason)
      case .columnOverwritten(let table, _, let column, _, let winner, _):
        (winner, .overwritten, "\(table).\(column)")
      case .localChanged, .queueDepth, .resetRequired, .checkpointExpired: nil
      }
    let listeners = state.withLock { state -> [Listener] in
      if let (id, kind, reason) = verdict {
        state.verdicts.append(.init(mutationId: id, kind: kind, reason: reason, at: Date()))
        state.verdicts.removeFirst(max(0, state.verdicts.count - Self.capacity))
      }
      return state.listeners.sorted { $0.key < $1.key }.map(\.value)
    }
    for listener in listeners { listener.call() }
  }
}
