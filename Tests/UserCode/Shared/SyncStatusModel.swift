import KizunaSync

// Without SwiftUI: `ObservableObject` and `@Published` are left out, nothing else.
@MainActor
final class SyncStatusModel {
  private(set) var health = syncScheduler.health()
  private var stopObserving: (() -> Void)?

  func start() {
    guard stopObserving == nil else { return }
    stopObserving = syncScheduler.onHealth { [weak self] health in
      Task { @MainActor in self?.health = health }
    }
  }

  func stop() {
    stopObserving?()
    stopObserving = nil
  }
}

/// What the two buttons of the status view do.
@MainActor
enum SyncStatusButtons {
  static func reset() {
    Task {
      _ = try? await kizunasync.reset()
      syncScheduler.wake()
    }
  }

  static func syncNow() { syncScheduler.wake() }
}
