import KizunaSync

// Without SwiftUI: `ObservableObject` and `@Published` are left out, nothing else.
@MainActor
final class TodoListModel {
  private(set) var titles: [String] = []
  private(set) var failure: String?
  private var stopListening: (@Sendable () -> Void)?

  func start() async {
    if stopListening == nil {
      stopListening = try? await kizunasync.on { [weak self] _ in
        Task { @MainActor in await self?.reload() }
      }
    }
    await reload()
  }

  func stop() {
    stopListening?()
    stopListening = nil
  }

  func reload() async {
    do {
      let rows = try await kizunasync.from("todos").select().execute() as? [[String: Any]] ?? []
      titles = rows.compactMap { $0["title"] as? String }
    } catch {
      failure = String(describing: error)
    }
  }

  func add(title: String) async {
    do {
      try await kizunasync.from("todos").insert(["title": title, "done": false])
    } catch {
      failure = String(describing: error)
    }
  }
}
