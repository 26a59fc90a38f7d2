import Glibc
import HostKit

/// A PostgreSQL cluster of the test process's own: made in a folder of its own when it is first needed, reached by a
/// Unix socket only, stopped and deleted when the process ends, however it ends.
public actor PostgresCluster {
  public static let shared = PostgresCluster()

  private var running: Task<String, any Error>?
  private var templates: [String: Task<Void, any Error>] = [:]
  private var count = 0

  private init() {}

  /// The folder of its socket; starts it.
  public func socketFolder() async throws -> String {
    if let running { return try await running.value }
    let task = Task { try await Self.start() }
    running = task
    return try await task.value
  }

  /// An empty database, or a copy of a template.
  ///
  /// - Parameters:
  ///   - template: its name, made from `setUp` by the first who asks.
  ///   - setUp: SQL texts that the superuser runs in turn, each in one transaction.
  public func makeDatabase(template: String = "template1", setUp: [String] = []) async throws -> TestDatabase {
    let folder = try await socketFolder()
    let maintenance = TestDatabase(socketFolder: folder, name: "postgres")
    if !setUp.isEmpty {
      let making =
        templates[template]
        ?? Task {
          _ = try await maintenance.run("create database \(template)")
          let database = TestDatabase(socketFolder: folder, name: template)
          for text in setUp { _ = try await database.run(text, inOneTransaction: true) }
        }
      templates[template] = making
      try await making.value
    }
    count += 1
    let name = "test_\(count)"
    _ = try await maintenance.run("create database \(name) template \(template)")
    return TestDatabase(socketFolder: folder, name: name)
  }

  /// The same for the time of `body`; the database is dropped afterwards.
  public nonisolated func withDatabase<Result: Sendable>(
    template: String = "template1", setUp: [String] = [], _ body: (TestDatabase) async throws -> Result
  ) async throws -> Result {
    let database = try await makeDatabase(template: template, setUp: setUp)
    do {
      let result = try await body(database)
      try await database.drop()
      return result
    } catch {
      try? await database.drop()
      throw error
    }
  }

  private static func start() async throws -> String {
    guard let installation = PostgresInstallation.newest else {
      throw ChildProcessError(message: PostgresInstallation.absence)
    }
    var template = Array("/tmp/kizuna-postgres-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw HostFileError(path: "/tmp", code: errno) }
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let keeper = try ChildProcess(
      executable: "/bin/sh",
      arguments: ["-c", script, "cluster", installation.programs, folder, String(getpid())])
    do {
      _ = try await keeper.line(of: .output, within: .seconds(120)) { $0 == "ready" }
    } catch {
      let ending = await keeper.stop()
      throw ChildProcessError(message: "no PostgreSQL cluster: " + ending.errors.joined(separator: "; "))
    }
    return folder
  }

  /// Makes the cluster, runs it, and removes it when the process that asked for it is gone. PostgreSQL refuses to run
  /// as root, so there it runs as `nobody`.
  private static let script = """
    programs=$1 folder=$2 owner=$3
    trap '' INT HUP
    cd /
    as() {
      if [ "$(id -u)" = 0 ]; then exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else exec "$@"; fi
    }
    end() { kill -INT "$server" 2>/dev/null; wait "$server" 2>/dev/null; rm -rf "$folder"; exit "$1"; }
    server=
    trap 'end 1' TERM
    [ "$(id -u)" = 0 ] && chown 65534:65534 "$folder"
    chmod 755 "$folder"
    (as "$programs/initdb" --pgdata="$folder/data" --username=postgres --auth=trust --encoding=UTF8 \\
      --locale=C.UTF-8 --no-sync) >"$folder/log" 2>&1 || { tail -n 5 "$folder/log" >&2; end 1; }
    (as "$programs/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c fsync=off \\
      -c full_page_writes=off -c wal_level=logical -c max_connections=200 -c max_prepared_transactions=20 \\
      -c autovacuum=off -c shared_buffers=64MB) >>"$folder/log" 2>&1 &
    server=$!
    until "$programs/pg_isready" --quiet --host="$folder"; do
      kill -0 "$server" 2>/dev/null || { tail -n 5 "$folder/log" >&2; end 1; }
      sleep 0.05
    done
    echo ready
    while [ -e "/proc/$owner/exe" ]; do sleep 0.2; done
    end 0
    """
}
