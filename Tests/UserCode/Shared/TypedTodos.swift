import Foundation
import KizunaSync

/// A row as an app of its own types has it. Not tied to an actor, because a transaction runs on the client's own thread.
nonisolated struct TypedTodo: Codable, Equatable, Identifiable, Sendable {
  var id: String
  var title: String
  var done: Bool
  var due: Date?

  enum CodingKeys: String, CodingKey {
    case id, title, done, due
  }
}

/// What a list does, without a cast.
enum TypedTodos {
  static func add(_ todo: TypedTodo) async throws {
    try await kizunasync.from("todos").insert(todo)
  }

  static func all() async throws -> [TypedTodo] {
    try await kizunasync.from("todos").select().order("title").execute(as: TypedTodo.self)
  }

  static func find(_ id: String) async throws -> TypedTodo? {
    try await kizunasync.from("todos").select().eq("id", id).maybeSingle(as: TypedTodo.self)
  }

  /// Of the module's own isolation, which reads and single writes keep.
  struct Completion: Encodable {
    var done = true
  }

  static func complete(_ id: String) async throws -> TypedTodo {
    try await kizunasync.from("todos").update(Completion()).eq("id", id).select().single(as: TypedTodo.self)
  }

  static func addBoth(_ first: TypedTodo, _ second: TypedTodo) async throws {
    try await kizunasync.transaction { transaction in
      try transaction.insert(into: "todos", first)
      try transaction.insert(into: "todos", second)
    }
  }
}

/// Adds, finds and completes: true when every step answered what it should.
func typedTodosWork() async throws -> Bool {
  let milk = TypedTodo(id: "t1", title: "Buy milk", done: false, due: Date(timeIntervalSince1970: 1_800_000_000.25))
  try await TypedTodos.add(milk)
  guard try await TypedTodos.all().contains(milk), try await TypedTodos.find("nothing") == nil else { return false }
  let done = try await TypedTodos.complete("t1")
  guard done.done, done.due == milk.due, try await TypedTodos.find("t1") == done else { return false }
  try await TypedTodos.addBoth(
    TypedTodo(id: "t2", title: "b", done: true, due: nil), TypedTodo(id: "t3", title: "a", done: true, due: nil))
  return try await TypedTodos.all().map(\.id).sorted() == ["t1", "t2", "t3"]
}
