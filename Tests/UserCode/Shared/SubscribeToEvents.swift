import KizunaSync

@MainActor
final class EventLog {
  static let shared = EventLog()
  private(set) var events: [KizunaSyncEngineEvent] = []
  func append(_ event: KizunaSyncEngineEvent) { events.append(event) }
}

@MainActor
func reload(after event: KizunaSyncEngineEvent) {
  EventLog.shared.append(event)
}

/// The first example of the page on events.
func basicSubscription() async throws -> @Sendable () -> Void {
  let stop = try await kizunasync.on { event in
    Task { @MainActor in reload(after: event) }
  }
  return stop
}

/// The second one, with the view's callbacks as methods.
@MainActor
final class BoardView {
  private var stop: (@Sendable () -> Void)?

  func task() async {
    stop = try? await kizunasync.on { event in
      Task { @MainActor in reload(after: event) }
    }
  }

  func onDisappear() { stop?() }
}
