// The example of the README, as it stands there: what is between `do {` and the end is compared line by line.
// swift-format-ignore-file
import KizunaDoorbell

struct Todo: Codable { var id: String; var title: String; var done: Bool? }

/// - Parameters:
///   - file: stands in for the file name of the README.
///   - print: hears what it prints.
func readmeExample(_ file: String, print: (String) -> Void) async {
do {
  let (configuration, _) = try GatewayConfiguration.load(file: file)
  let gateway = Gateway(configuration)
  try await gateway.start()
  try await gateway.client.sync()  // until the rows are here
  try await gateway.client.from("todos").insert(["title": "water the plants", "done": false])
  let open = try await gateway.client.from("todos").select().eq("done", false).order("title").execute(as: Todo.self)
  for todo in open { print(todo.title) }
  try await gateway.client.sync()  // a program that lives on need not ask
  await gateway.stop()
} catch {
  print("todos: \(error)")  // a sentence with the remedy
}
}
