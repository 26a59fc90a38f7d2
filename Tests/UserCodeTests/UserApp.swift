import KizunaSync
import Supabase

@testable import UserCodeMainActorMode
@testable import UserCodeSwift5Mode
@testable import UserCodeSwift6Mode

@MainActor
protocol TodoScreen: AnyObject {
  var titles: [String] { get }
  var failure: String? { get }
  func start() async
  func stop()
  func add(title: String) async
}

@MainActor
protocol StatusScreen: AnyObject {
  var health: KizunaSyncSyncHealth { get }
  func start()
  func stop()
}

@MainActor
protocol RootScreen: AnyObject {
  var isOpen: Bool { get }
  var failure: String? { get }
  func task() async
}

extension UserCodeSwift5Mode.TodoListModel: TodoScreen {}
extension UserCodeSwift6Mode.TodoListModel: TodoScreen {}
extension UserCodeMainActorMode.TodoListModel: TodoScreen {}
extension UserCodeSwift5Mode.SyncStatusModel: StatusScreen {}
extension UserCodeSwift6Mode.SyncStatusModel: StatusScreen {}
extension UserCodeMainActorMode.SyncStatusModel: StatusScreen {}
extension UserCodeSwift5Mode.TodoApp: RootScreen {}
extension UserCodeSwift6Mode.TodoApp: RootScreen {}
extension UserCodeMainActorMode.TodoApp: RootScreen {}

/// The parts of one compilation of the example app. Its globals come to life when they are first asked for.
@MainActor
struct UserApp {
  var name: String
  var client: () -> KizunaSyncClient
  var supabase: () -> SupabaseClient
  var scheduler: () -> KizunaSyncScheduler
  var usage: () -> KizunaSyncScheduler
  var withRealtime: () -> KizunaSyncScheduler
  var root: () -> any RootScreen
  var todos: () -> any TodoScreen
  var status: () -> any StatusScreen
  var pressReset: () -> Void
  var subscribe: () async throws -> @Sendable () -> Void
  var events: () -> [KizunaSyncEngineEvent]
  var typed: () async throws -> Bool

  static let all = [
    UserApp(
      name: "Swift 5", client: { UserCodeSwift5Mode.kizunasync }, supabase: { UserCodeSwift5Mode.supabase },
      scheduler: { UserCodeSwift5Mode.syncScheduler }, usage: { UserCodeSwift5Mode.Usage.syncScheduler },
      withRealtime: { UserCodeSwift5Mode.WithRealtime.syncScheduler }, root: { UserCodeSwift5Mode.TodoApp() },
      todos: { UserCodeSwift5Mode.TodoListModel() }, status: { UserCodeSwift5Mode.SyncStatusModel() },
      pressReset: { UserCodeSwift5Mode.SyncStatusButtons.reset() },
      subscribe: { try await UserCodeSwift5Mode.basicSubscription() },
      events: { UserCodeSwift5Mode.EventLog.shared.events },
      typed: { try await UserCodeSwift5Mode.typedTodosWork() }),
    UserApp(
      name: "Swift 6", client: { UserCodeSwift6Mode.kizunasync }, supabase: { UserCodeSwift6Mode.supabase },
      scheduler: { UserCodeSwift6Mode.syncScheduler }, usage: { UserCodeSwift6Mode.Usage.syncScheduler },
      withRealtime: { UserCodeSwift6Mode.WithRealtime.syncScheduler }, root: { UserCodeSwift6Mode.TodoApp() },
      todos: { UserCodeSwift6Mode.TodoListModel() }, status: { UserCodeSwift6Mode.SyncStatusModel() },
      pressReset: { UserCodeSwift6Mode.SyncStatusButtons.reset() },
      subscribe: { try await UserCodeSwift6Mode.basicSubscription() },
      events: { UserCodeSwift6Mode.EventLog.shared.events },
      typed: { try await UserCodeSwift6Mode.typedTodosWork() }),
    UserApp(
      name: "Swift 6, main actor by default", client: { UserCodeMainActorMode.kizunasync },
      supabase: { UserCodeMainActorMode.supabase }, scheduler: { UserCodeMainActorMode.syncScheduler },
      usage: { UserCodeMainActorMode.Usage.syncScheduler },
      withRealtime: { UserCodeMainActorMode.WithRealtime.syncScheduler }, root: { UserCodeMainActorMode.TodoApp() },
      todos: { UserCodeMainActorMode.TodoListModel() }, status: { UserCodeMainActorMode.SyncStatusModel() },
      pressReset: { UserCodeMainActorMode.SyncStatusButtons.reset() },
      subscribe: { try await UserCodeMainActorMode.basicSubscription() },
      events: { UserCodeMainActorMode.EventLog.shared.events },
      typed: { try await UserCodeMainActorMode.typedTodosWork() }),
  ]
}
