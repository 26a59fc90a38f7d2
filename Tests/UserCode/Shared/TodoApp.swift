/// What the root view does in its task.
@MainActor
final class TodoApp {
  private(set) var isOpen = false
  private(set) var failure: String?

  func task() async {
    do {
      try await kizunasyncReady.value
      isOpen = true
    } catch {
      failure = String(describing: error)
    }
  }
}
